import { jsonEqual } from '../kube/json-equal.ts';
import type { KubeObject } from '../kube/object.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import { identityOf } from './apply.ts';
import { CliError } from './cli-error.ts';
import { DEFAULT_CHOICES, SYSTEM_NAMESPACE, type Choices } from './installation.ts';
import type { ManifestObject } from './manifests.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/** ConfigMap that says what was installed, and how. */
const NAME = 'spillway-installation';

/** What was installed last. */
export interface Inventory {
  readonly version: string;
  readonly choices: Choices;
  /** Those of before, as long as the last install has not come to its end: something of each may be there. */
  readonly former: readonly Choices[];
  /** Only what it takes to delete them. */
  readonly objects: readonly ManifestObject[];
  /** Marks of the manager's configuration as it was shipped, for each of these choices; none of former versions, which wrote none. */
  readonly configurations: readonly string[];
}

interface Stored extends KubeObject {
  data?: Record<string, string>;
}

/** Undefined where nothing was installed by this program. Throws CliError. */
export async function readInventory(host: Viewer): Promise<Inventory | undefined> {
  const found = await host.tryGet<Stored>(CONFIG_MAPS, { namespace: SYSTEM_NAMESPACE, name: NAME });
  if (found instanceof MissingRight)
    throw new CliError(`you may not ${found.right}`, { exitCode: 3, fix: 'ask an administrator of the host' });
  const { version, choices, objects, former = '[]', configuration = '' } = found?.data ?? {};
  if (version === undefined || choices === undefined || objects === undefined) return undefined;
  try {
    return {
      version,
      choices: { ...DEFAULT_CHOICES, ...(JSON.parse(choices) as Partial<Choices>) },
      former: (JSON.parse(former) as Partial<Choices>[]).map((one) => ({ ...DEFAULT_CHOICES, ...one })),
      objects: JSON.parse(objects) as ManifestObject[],
      configurations: configuration.split(' ').filter((mark) => mark !== ''),
    };
  } catch {
    throw new CliError(`ConfigMap ${SYSTEM_NAMESPACE}/${NAME} cannot be read`, { fix: 'delete it, and install again' });
  }
}

/** Whatever may have been applied in the name of these choices. */
export function everChosen(inventory: Inventory | undefined): readonly Choices[] {
  return inventory === undefined ? [] : [inventory.choices, ...inventory.former];
}

/** What is there, or may be, from the moment on when `next` begins to take the place of `before`, until it has. */
export function begun(before: Inventory | undefined, next: Inventory): Inventory {
  const former = everChosen(before).filter(
    (one, index, all) => all.findIndex((other) => jsonEqual(one, other)) === index && !jsonEqual(one, next.choices),
  );
  const { goes, stays } = noLongerWanted(before?.objects ?? [], next.objects);
  return {
    ...next,
    former,
    objects: [...goes, ...stays, ...next.objects],
    configurations: [...new Set([...(before?.configurations ?? []), ...next.configurations])],
  };
}

/**
 * What an installation had and another one does not have any more. Kinds stay, whoever else may use them and whichever version is gone
 * back to: with a kind every object of it would go.
 */
export function noLongerWanted(
  before: readonly ManifestObject[],
  after: readonly ManifestObject[],
): { goes: readonly ManifestObject[]; stays: readonly ManifestObject[] } {
  const kept = new Set(after.map(identityOf));
  const left = before.filter((one) => !kept.has(identityOf(one)));
  const isKind = ({ kind }: ManifestObject): boolean => kind === 'CustomResourceDefinition';
  return { goes: left.filter((one) => !isKind(one)), stays: left.filter(isKind) };
}

/** The object that remembers an installation: before anything of it is applied, and when all is. */
export function inventoryOf({ version, choices, former, objects, configurations }: Inventory): ManifestObject {
  const short = objects.map(({ apiVersion, kind, metadata: { namespace, name } }) => ({
    apiVersion,
    kind,
    metadata: { ...(namespace === undefined ? {} : { namespace }), name },
  }));
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: SYSTEM_NAMESPACE, name: NAME },
    data: {
      version,
      choices: JSON.stringify(choices),
      objects: JSON.stringify(short),
      ...(former.length === 0 ? {} : { former: JSON.stringify(former) }),
      ...(configurations.length === 0 ? {} : { configuration: configurations.join(' ') }),
    },
  } as ManifestObject;
}
