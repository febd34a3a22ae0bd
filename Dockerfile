# syntax=docker/dockerfile:1
#
# The image holds the static sidecar, the certificates of public authorities for https targets
# and trace collectors, and nothing else: no shell, no user database, no time zones (they are in
# the program), no HEALTHCHECK (Kubernetes has probes). make image-rootfs and make image-tar read
# this file too, without an engine. To package a binary that is already built:
#
#   mkdir -p bin && cp sidecar bin/ && cp /etc/ssl/certs/ca-certificates.crt bin/
#   docker build --build-arg BINARY=prebuilt .

ARG BINARY=source

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=devel COMMIT=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w \
      -X github.com/leasecron/leasecron/internal/version.version=$VERSION \
      -X github.com/leasecron/leasecron/internal/version.commit=$COMMIT" \
      -o /out/sidecar ./cmd/sidecar

FROM scratch AS binary-source
COPY --from=build /out/sidecar /sidecar
COPY --from=build /etc/ssl/certs/ca-certificates.crt /ca-certificates.crt

FROM scratch AS binary-prebuilt
COPY bin/sidecar /sidecar
COPY bin/ca-certificates.crt /ca-certificates.crt

FROM binary-$BINARY AS binary

FROM scratch
ARG VERSION=devel COMMIT=unknown
LABEL org.opencontainers.image.title="leasecron" \
      org.opencontainers.image.description="Cron sidecar: fires scheduled jobs of replicated services exactly once, as HTTP callbacks" \
      org.opencontainers.image.source="https://github.com/leasecron/leasecron" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=binary /ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=binary /sidecar /sidecar
USER 65532:65532
EXPOSE 9470
ENTRYPOINT ["/sidecar"]
CMD ["run"]
