import { rewriteDownwardFiles } from './downward-api.ts';
import {
  type JsonRecord,
  keepSome,
  listOf,
  recordOf,
  rewriteField,
  rewriteItems,
  textOf,
} from '../kube/json-fields.ts';
import { isNamedAsTokens } from '../kube/token-volume.ts';

/** ConfigMaps that every cluster publishes in each of its namespaces; a member has its own. */
const PUBLISHED_CONFIG_MAPS = new Set(['kube-root-ca.crt', 'openshift-service-ca.crt']);

/**
 * Names of the volumes that the host's ServiceAccount admission put into the pod: by their prefix, and by holding a
 * token for the API server and nothing that admission has no reason to add. What a user wrote is not among them.
 */
export function injectedTokenVolumes(spec: JsonRecord): ReadonlySet<string> {
  const names = new Set<string>();
  for (const item of listOf(spec['volumes'])) {
    const volume = recordOf(item);
    const name = textOf(volume?.['name']);
    if (name !== undefined && isNamedAsTokens(name) && isInjected(recordOf(volume?.['projected']))) names.add(name);
  }
  return names;
}

function isInjected(projected: JsonRecord | undefined): boolean {
  const sources = listOf(projected?.['sources']).map((source) => recordOf(source) ?? {});
  return sources.some((source) => source['serviceAccountToken'] !== undefined) && !sources.some(isUsers);
}

/** Kinds of sources that nobody knows yet may well come from a newer admission. */
function isUsers(source: JsonRecord): boolean {
  if (source['secret'] !== undefined || source['podCertificate'] !== undefined) return true;
  const audience = recordOf(source['serviceAccountToken'])?.['audience'] ?? '';
  const configMap = recordOf(source['configMap']);
  return audience !== '' || (configMap !== undefined && !PUBLISHED_CONFIG_MAPS.has(textOf(configMap['name']) ?? ''));
}

/** Volumes of the member pod: without those removed, and with downward API files that speak of the host. */
export function rewriteVolumes(volumes: unknown, removed: ReadonlySet<string>): unknown {
  const after = rewriteItems(volumes, (volume) => {
    if (removed.has(textOf(volume['name']) ?? '')) return undefined;
    return rewriteField(rewriteField(volume, 'downwardAPI', rewriteDownwardFiles), 'projected', rewriteProjected);
  });
  return keepSome(after, volumes);
}

function rewriteProjected(projected: unknown): unknown {
  const record = recordOf(projected);
  if (record === undefined) return projected;
  return rewriteField(record, 'sources', (sources) =>
    rewriteItems(sources, (source) => rewriteField(source, 'downwardAPI', rewriteDownwardFiles)),
  );
}
