# The image of the demo cluster from source, for people without Rust:
#
#   docker build --tag tidegate:local .
#
# With Rust, `cargo xtask image` makes the same, of docker/Dockerfile.
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo xtask image --files /image/files && mkdir /image/empty

FROM scratch
COPY --from=build /image/files/ /
COPY --from=build --chown=10001:10001 /image/empty/ /var/lib/tidegate/
COPY --from=build --chown=10001:10001 /image/empty/ /shared/
ENV PATH=/bin
USER 10001:10001
WORKDIR /var/lib/tidegate
CMD ["tidegate", "--help"]
