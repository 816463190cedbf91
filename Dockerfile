# syntax=docker/dockerfile:1

# The build needs the C compiler that this image has, since SQLite is compiled in, and protoc for the client of etcd.
# What cargo downloaded and built stays in caches, so that a change compiles only what it changed.
FROM rust:1.94-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends protobuf-compiler libprotobuf-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo build --profile dist --locked --features full \
    && cp target/dist/doublebook /doublebook \
    && mkdir /empty

# No shell and no package manager: the C library, certificates, and an ordinary user. Of the same Debian as the build.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /doublebook /usr/local/bin/doublebook
COPY --from=build --chown=65532:65532 /empty /data
USER 65532:65532
WORKDIR /data
VOLUME /data
ENV DOUBLEBOOK_LISTEN=0.0.0.0:3001 \
    DOUBLEBOOK_DATA_DIR=/data
EXPOSE 3001
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s --retries=3 CMD ["/usr/local/bin/doublebook", "health"]
ENTRYPOINT ["/usr/local/bin/doublebook"]
CMD ["serve"]
