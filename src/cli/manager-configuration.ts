import { parse, stringify } from 'yaml';
import { isJsonObject, jsonEqual, ownField, setOwnField, type JsonObject } from '../kube/json-equal.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import { CliError } from './cli-error.ts';
import {
  configurationIn,
  DEFAULT_CHOICES,
  MANAGER,
  markOf,
  settingsOf,
  shippedConfiguration,
  SYSTEM_NAMESPACE,
} from './installation.ts';
import type { Choices } from './installation.ts';
import { everChosen, type Inventory } from './inventory.ts';
import type { ManifestObject } from './manifests.ts';
import { MissingRight, type Viewer } from './viewer.ts';

/** What somebody else made of the configuration, with what is chosen in it; undefined where nobody did. Throws CliError. */
export async function editedConfiguration(
  host: Pick<Viewer, 'tryGet'>,
  before: Inventory | undefined,
  choices: Choices,
): Promise<string | undefined> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: MANAGER };
  const found = await host.tryGet<ManifestObject>(CONFIG_MAPS, ref);
  if (found instanceof MissingRight)
    throw new CliError(`you may not ${found.right}`, { exitCode: 3, fix: 'ask an administrator of the host' });
  const text = found === undefined ? undefined : configurationIn(found);
  if (text === undefined) return undefined;
  const former = everChosen(before);
  const shipped = [choices, ...(before === undefined ? [DEFAULT_CHOICES] : former)].map(shippedConfiguration);
  if (shipped.includes(text) || before?.configurations.includes(markOf(text)) === true) return undefined;
  return withChoices(text, former.map(settingsOf), settingsOf(choices));
}

/**
 * The text with what is chosen in it, and without what was chosen before; to the letter as it is where that changes nothing. Throws
 * CliError for what is no configuration.
 */
function withChoices(text: string, before: readonly object[], now: object): string {
  const live = parsed(text);
  const bare = before.reduce<JsonObject>((left, gone) => without(left, gone as JsonObject), live);
  const next = merged(bare, now as JsonObject);
  return jsonEqual(next, live) ? text : stringify(next);
}

function parsed(text: string): JsonObject {
  const refused = (reason: string): CliError =>
    new CliError(`ConfigMap ${SYSTEM_NAMESPACE}/${MANAGER} cannot be read, and nothing was done`, {
      reason,
      fix: 'correct it, or delete it to have the configuration that is shipped, and repeat this',
      page: 'guides/install.md#configuration',
    });
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw refused(`its config.yaml is not YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isJsonObject(value)) throw refused('its config.yaml has no fields');
  return value;
}

/** Without the values of `gone`, where they are still these. */
function without(from: JsonObject, gone: JsonObject): JsonObject {
  const kept = Object.entries(from).filter(([key, value]) => !jsonEqual(value, ownField(gone, key)));
  const left: JsonObject = {};
  for (const [key, value] of kept) {
    const inner = ownField(gone, key);
    const rest = isJsonObject(inner) && isJsonObject(value) ? without(value, inner) : value;
    setOwnField(left, key, rest);
  }
  return left;
}

function merged(into: JsonObject, wanted: JsonObject): JsonObject {
  const all: JsonObject = { ...into };
  for (const [key, value] of Object.entries(wanted)) {
    const had = ownField(into, key);
    setOwnField(all, key, isJsonObject(value) && isJsonObject(had) ? merged(had, value) : value);
  }
  return all;
}
