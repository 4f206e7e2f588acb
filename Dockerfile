# The image of `spillway manager`; hack/kind.sh builds and loads it.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npm run build && npm prune --omit=dev

FROM node:24-bookworm-slim
# Less room for young objects than Node takes by itself: 15 MB, at no cost that could be measured.
ENV NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=8
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
USER 65532:65532
ENTRYPOINT ["node", "--enable-source-maps", "dist/src/main.js"]
CMD ["manager"]
