//! The macro that makes a gateway trait and its adapters of one table of methods.

/// Makes, of the methods of one service: the gateway trait, `GrpcClient` and `GrpcService` (tonic), and `LinkClient`
/// (the in-memory network).
macro_rules! gateway {
    (
        $(#[$doc:meta])*
        trait $Gateway:ident, endpoint $endpoint:ident,
        client $client_mod:ident::$Client:ident, server $server_mod:ident::$Service:ident / $Server:ident;
        unary { $($(#[$unary_doc:meta])* $unary:ident($Request:ident) -> $Reply:ident;)* }
        streams { $($(#[$stream_doc:meta])* $stream:ident($In:ident) -> $Out:ident as $Associated:ident;)* }
    ) => {
        $(#[$doc])*
        #[async_trait::async_trait]
        pub trait $Gateway: Send + Sync + 'static {
            $($(#[$unary_doc])* async fn $unary(&self, request: v1::$Request) -> Result<v1::$Reply, RpcError>;)*
            $(
                $(#[$stream_doc])*
                async fn $stream(
                    &self,
                    inbound: MessageStream<v1::$In>,
                ) -> Result<MessageStream<v1::$Out>, RpcError>;
            )*
        }

        /// The gateway of a peer that is reached by gRPC.
        pub(crate) struct GrpcClient {
            client: v1::$client_mod::$Client<tonic::transport::Channel>,
            calls: Calls,
        }

        impl GrpcClient {
            pub(crate) fn new(calls: Calls) -> Self {
                let client = v1::$client_mod::$Client::new(calls.channel())
                    .max_decoding_message_size(calls.message_limit())
                    .max_encoding_message_size(calls.message_limit());
                Self { client, calls }
            }
        }

        #[async_trait::async_trait]
        impl $Gateway for GrpcClient {
            $(
                async fn $unary(&self, request: v1::$Request) -> Result<v1::$Reply, RpcError> {
                    let mut client = self.client.clone();
                    let name = concat!(stringify!($endpoint), ".", stringify!($unary));
                    let request = self.calls.request(name, request)?;
                    self.calls.unary(name, client.$unary(request)).await
                }
            )*
            $(
                async fn $stream(
                    &self,
                    inbound: MessageStream<v1::$In>,
                ) -> Result<MessageStream<v1::$Out>, RpcError> {
                    let mut client = self.client.clone();
                    let name = concat!(stringify!($endpoint), ".", stringify!($stream));
                    let (request, broken) = self.calls.stream_request(name, inbound);
                    self.calls.open(name, client.$stream(request), broken).await
                }
            )*
        }

        /// The gRPC service that asks a gateway of this process.
        pub(crate) struct GrpcService {
            gateway: std::sync::Arc<dyn $Gateway>,
            rules: ServiceRules,
        }

        impl GrpcService {
            /// The service with its limits, checking the protocol version of each call before anything is decoded.
            pub(crate) fn serve(
                gateway: std::sync::Arc<dyn $Gateway>,
                rules: ServiceRules,
            ) -> InterceptedService<v1::$server_mod::$Server<Self>, VersionCheck> {
                let server = v1::$server_mod::$Server::new(Self { gateway, rules })
                    .max_decoding_message_size(rules.message_limit)
                    .max_encoding_message_size(rules.message_limit);
                InterceptedService::new(server, VersionCheck { protocol: rules.protocol })
            }
        }

        #[async_trait::async_trait]
        impl v1::$server_mod::$Service for GrpcService {
            $(
                async fn $unary(
                    &self,
                    request: tonic::Request<v1::$Request>,
                ) -> Result<tonic::Response<v1::$Reply>, tonic::Status> {
                    self.rules.answer(self.gateway.$unary(request.into_inner()).await)
                }
            )*
            $(
                type $Associated = ReplyStream<v1::$Out>;

                async fn $stream(
                    &self,
                    request: tonic::Request<tonic::Streaming<v1::$In>>,
                ) -> Result<tonic::Response<Self::$Associated>, tonic::Status> {
                    let inbound = self.rules.inbound(request.into_inner());
                    self.rules.answer_stream(self.gateway.$stream(inbound).await)
                }
            )*
        }

        /// The gateway of a peer on the in-memory network.
        pub(crate) struct LinkClient {
            link: Link,
        }

        impl LinkClient {
            pub(crate) const fn new(link: Link) -> Self {
                Self { link }
            }
        }

        #[async_trait::async_trait]
        impl $Gateway for LinkClient {
            $(
                async fn $unary(&self, request: v1::$Request) -> Result<v1::$Reply, RpcError> {
                    let name = concat!(stringify!($endpoint), ".", stringify!($unary));
                    self.link
                        .unary(name, |endpoints| endpoints.$endpoint.clone(), request, |gateway, request| {
                            Box::pin(async move { gateway.$unary(request).await })
                        })
                        .await
                }
            )*
            $(
                async fn $stream(
                    &self,
                    inbound: MessageStream<v1::$In>,
                ) -> Result<MessageStream<v1::$Out>, RpcError> {
                    let name = concat!(stringify!($endpoint), ".", stringify!($stream));
                    self.link
                        .open(name, |endpoints| endpoints.$endpoint.clone(), inbound, |gateway, inbound| {
                            Box::pin(async move { gateway.$stream(inbound).await })
                        })
                        .await
                }
            )*
        }
    };
}
