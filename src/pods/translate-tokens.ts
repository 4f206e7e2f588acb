import { type JsonRecord, listOf, recordOf, rewriteField, rewriteItems, textOf } from '../kube/json-fields.ts';

/** A token that projected volumes of a pod ask for. */
export interface TokenSource {
  /** Key of the Secret in the member that holds it. */
  key: string;
  /** Empty: the API server itself. */
  audience: string;
  expirationSeconds: number;
}

/** Type of the Secrets in members that hold tokens of the host: one per pod, made and refreshed by PodTokens. */
export const TOKEN_SECRET_TYPE = 'spillway.dev/pod-tokens';
/** Key of such a Secret: the CA of the host's API server. */
export const CA_KEY = 'ca.crt';
/** ConfigMap with the CA of its own cluster that every cluster publishes in each of its namespaces. */
export const CA_CONFIG_MAP = 'kube-root-ca.crt';

const NAME_PREFIX = 'spillway-tokens-';
const NAME = /^spillway-tokens-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** The API server's default. */
const DEFAULT_SECONDS = 3600;

/** Name of the Secret in the member with the tokens of a host pod. */
export function tokenSecretName(hostPodUid: string): string {
  return NAME_PREFIX + hostPodUid;
}

export function isTokenSecretName(name: string): boolean {
  return NAME.test(name);
}

/** The different tokens that a pod's projected volumes ask for, in order of first mention. */
export function tokenSourcesOf(spec: JsonRecord): TokenSource[] {
  const found = new Map<string, TokenSource>();
  for (const source of projectedWithTokens(spec).flat()) {
    const wanted = wantedToken(source);
    if (wanted === undefined) continue;
    const id = idOf(wanted);
    if (!found.has(id)) found.set(id, { key: `token-${found.size}`, ...wanted });
  }
  return [...found.values()];
}

/** Whether a volume with a token also asks for the CA that goes with it. */
export function wantsCa(spec: JsonRecord): boolean {
  return projectedWithTokens(spec).flat().some(isCa);
}

/** Projected volumes with tokens: the tokens, and the CA that goes with them, come from the pod's Secret in the member. */
export function rewriteTokens(volumes: unknown, spec: JsonRecord, hostPodUid: string): unknown {
  const keys = new Map(tokenSourcesOf(spec).map((source) => [idOf(source), source.key]));
  if (keys.size === 0) return volumes;
  const name = tokenSecretName(hostPodUid);
  return rewriteItems(volumes, (volume) => {
    if (!listOf(recordOf(volume['projected'])?.['sources']).some(isToken)) return volume;
    return rewriteField(volume, 'projected', (projected) =>
      rewriteField(recordOf(projected) ?? {}, 'sources', (sources) =>
        rewriteItems(sources, (source) => fromSecret(source, name, keys)),
      ),
    );
  });
}

function fromSecret(source: JsonRecord, name: string, keys: ReadonlyMap<string, string>): JsonRecord {
  const wanted = wantedToken(source);
  if (wanted !== undefined) {
    const path = recordOf(source['serviceAccountToken'])?.['path'];
    return { secret: { name, items: [{ key: keys.get(idOf(wanted)), path }] } };
  }
  if (!isCa(source)) return source;
  const { name: _, ...rest } = recordOf(source['configMap']) ?? {};
  return { secret: { items: [{ key: CA_KEY, path: CA_KEY }], ...rest, name } };
}

function projectedWithTokens(spec: JsonRecord): JsonRecord[][] {
  return listOf(spec['volumes'])
    .map((volume) => listOf(recordOf(recordOf(volume)?.['projected'])?.['sources']))
    .filter((sources) => sources.some(isToken))
    .map((sources) => sources.map((source) => recordOf(source) ?? {}));
}

function isToken(source: unknown): boolean {
  return recordOf(recordOf(source)?.['serviceAccountToken']) !== undefined;
}

function isCa(source: JsonRecord): boolean {
  return recordOf(source['configMap'])?.['name'] === CA_CONFIG_MAP;
}

function wantedToken(source: JsonRecord): Omit<TokenSource, 'key'> | undefined {
  const token = recordOf(source['serviceAccountToken']);
  if (token === undefined) return undefined;
  const seconds = token['expirationSeconds'];
  return {
    audience: textOf(token['audience']) ?? '',
    expirationSeconds: typeof seconds === 'number' ? seconds : DEFAULT_SECONDS,
  };
}

function idOf({ audience, expirationSeconds }: Omit<TokenSource, 'key'>): string {
  return JSON.stringify([audience, expirationSeconds]);
}
