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
  /** Only what it takes to delete them. */
  readonly objects: readonly ManifestObject[];
  /** Mark of the manager's configuration as that version shipped it; not of one that former versions wrote. */
  readonly configuration?: string | undefined;
}

interface Stored extends KubeObject {
  data?: Record<string, string>;
}

/** Undefined where nothing was installed by this program. Throws CliError. */
export async function readInventory(host: Viewer): Promise<Inventory | undefined> {
  const found = await host.tryGet<Stored>(CONFIG_MAPS, { namespace: SYSTEM_NAMESPACE, name: NAME });
  if (found instanceof MissingRight)
    throw new CliError(`you may not ${found.right}`, { exitCode: 3, fix: 'ask an administrator of the host' });
  const { version, choices, objects, configuration } = found?.data ?? {};
  if (version === undefined || choices === undefined || objects === undefined) return undefined;
  try {
    return {
      version,
      choices: { ...DEFAULT_CHOICES, ...(JSON.parse(choices) as Partial<Choices>) },
      objects: JSON.parse(objects) as ManifestObject[],
      configuration,
    };
  } catch {
    throw new CliError(`ConfigMap ${SYSTEM_NAMESPACE}/${NAME} cannot be read`, { fix: 'delete it, and install again' });
  }
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

/** The object that remembers an installation; it is applied with it. */
export function inventoryOf({ version, choices, objects, configuration }: Inventory): ManifestObject {
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
      ...(configuration === undefined ? {} : { configuration }),
    },
  } as ManifestObject;
}
