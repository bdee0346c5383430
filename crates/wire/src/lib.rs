//! The wire between the roles: generated gRPC code, gateways, transports, registration, fencing.
