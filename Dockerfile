# How to build and run it: docs/container.md.

FROM docker.io/library/node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.service.json tsconfig.types.json ./
COPY src src
COPY tools/browser-files.ts tools/build.mjs tools/
RUN node tools/build.mjs service
# The commit that GET /version reports.
ARG COMMIT=
RUN if [ -n "$COMMIT" ]; then npm pkg set "commit=$COMMIT"; fi

FROM docker.io/library/node:24-bookworm-slim
# ps and setpriv end process trees; tini, as process 1, forwards signals and reaps orphans.
RUN apt-get update \
  && apt-get install -y --no-install-recommends procps tini util-linux \
  && rm -rf /var/lib/apt/lists/*
# A model CLI to install beside the service, such as @anthropic-ai/claude-code@2.1.332.
ARG CLI_PACKAGE=
RUN if [ -n "$CLI_PACKAGE" ]; then npm install --global --allow-scripts="$CLI_PACKAGE" "$CLI_PACKAGE" && rm -rf ~/.npm; fi
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts && rm -rf ~/.npm
COPY --from=build /app/package.json ./
COPY --from=build /app/dist/src dist/src
COPY README.md LICENSE ./
COPY docs docs
COPY deploy/container deploy/container
# The command that package.json names.
RUN command=$(node -p "require('./package.json').bin['prompt-relay']") \
  && chmod +x "$command" \
  && ln -s "/app/$command" /usr/local/bin/prompt-relay

# For a store: a new volume at this path gets this owner and mode.
RUN install -d -o 1000 -g 1000 -m 0700 /var/lib/prompt-relay

# A published port leads to the container's own address, never to its loopback, so the service needs an API key.
ENV NODE_ENV=production HOME=/home/node TMPDIR=/tmp MODEL_API_HOST=0.0.0.0
EXPOSE 5051
# The user node, by number, so that an engine can see that it is not root.
USER 1000:1000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 CMD ["node", "/app/deploy/container/healthcheck.js"]
ENTRYPOINT ["tini", "--", "prompt-relay"]
