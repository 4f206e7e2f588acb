import { EXTENDER_RESOURCE } from '../api/marks.ts';
import { type HostFacts, rewriteVariable } from './downward-api.ts';
import type { ServiceVariable } from './service-env.ts';
import {
  type JsonRecord,
  keepSome,
  listOf,
  recordOf,
  rewriteField,
  rewriteItems,
  textOf,
  without,
} from '../kube/json-fields.ts';

export interface ContainerContext {
  facts: HostFacts;
  /** Names of volumes that the member pod does not have. */
  removedVolumes: ReadonlySet<string>;
  /** In the order they are to appear. */
  serviceEnv: readonly ServiceVariable[];
  /** Keys of a ConfigMap or Secret in the pod's namespace on the host; none when it does not exist. */
  environmentKeys: ((kind: 'ConfigMap' | 'Secret', name: string) => Iterable<string>) | undefined;
}

/** A list of containers of any kind (regular, init, ephemeral) as the member gets them. */
export function rewriteContainers(containers: unknown, context: ContainerContext): unknown {
  return rewriteItems(containers, (container) => rewriteContainer(container, context));
}

export function rewriteContainer(container: JsonRecord, context: ContainerContext): JsonRecord {
  const unmarked = rewriteField(container, 'resources', withoutExtenderMark);
  const mounted = rewriteField(unmarked, 'volumeMounts', (mounts) =>
    keepSome(
      rewriteItems(mounts, (mount) => (context.removedVolumes.has(textOf(mount['name']) ?? '') ? undefined : mount)),
      mounts,
    ),
  );
  const before = mounted['env'];
  if (before !== undefined && before !== null && !Array.isArray(before)) return mounted;
  const own = rewriteItems(before, (variable) => rewriteVariable(variable, context.facts));
  const services = serviceVariables(mounted, context);
  if (services.length > 0) return { ...mounted, env: [...services, ...listOf(own)] };
  return own === before ? mounted : { ...mounted, env: own };
}

/** Resources without the mark by which the host's scheduler knows whom to ask about the pod. */
export function withoutExtenderMark(resources: unknown): unknown {
  let result = recordOf(resources);
  for (const kind of ['requests', 'limits']) {
    const amounts = recordOf(result?.[kind]);
    if (result === undefined || amounts === undefined || !Object.hasOwn(amounts, EXTENDER_RESOURCE)) continue;
    const left = without(amounts, [EXTENDER_RESOURCE]);
    result = Object.keys(left).length === 0 ? without(result, [kind]) : { ...result, [kind]: left };
  }
  return result ?? resources;
}

/**
 * The host's service variables, as literals that come before the container's own, so that `$(NAME)` finds them. A
 * kubelet lets both `env` and `envFrom` win over them; a literal would win over `envFrom`, so names that come from
 * there are left out.
 */
function serviceVariables(container: JsonRecord, context: ContainerContext): readonly ServiceVariable[] {
  if (context.serviceEnv.length === 0) return [];
  const taken = new Set<string>();
  for (const item of listOf(container['env'])) {
    const name = textOf(recordOf(item)?.['name']);
    if (name !== undefined) taken.add(name);
  }
  for (const item of listOf(container['envFrom'])) addSourceNames(taken, recordOf(item), context);
  return taken.size === 0 ? context.serviceEnv : context.serviceEnv.filter(({ name }) => !taken.has(name));
}

function addSourceNames(taken: Set<string>, source: JsonRecord | undefined, context: ContainerContext): void {
  const prefix = textOf(source?.['prefix']) ?? '';
  const configMap = textOf(recordOf(source?.['configMapRef'])?.['name']);
  const secret = textOf(recordOf(source?.['secretRef'])?.['name']);
  const add = (kind: 'ConfigMap' | 'Secret', name: string | undefined): void => {
    if (name === undefined || context.environmentKeys === undefined) return;
    for (const key of context.environmentKeys(kind, name)) taken.add(prefix + key);
  };
  add('ConfigMap', configMap);
  add('Secret', secret);
}
