import type { Overrider, Overriders } from '../api/overriders.ts';
import type { JsonRecord } from '../kube/json-fields.ts';
import { overrideEnv, overrideInitContainers, overrideResources, overrideWords } from './container-overriders.ts';
import { overrideField } from './field-overrider.ts';
import { overrideImages } from './image-overrider.ts';
import { applyPatchOperation } from './json-patch.ts';
import { overrideMetadata } from './metadata-overriders.ts';
import { objectPath } from './object-path.ts';
import { OverrideError } from './override-error.ts';
import {
  overrideNodeSelector,
  overridePullSecrets,
  overrideRuntimeClass,
  overrideServiceAccount,
  overrideStorageClass,
  overrideTolerations,
} from './pod-overriders.ts';

interface Step {
  readonly name: keyof Overriders;
  readonly run: (object: JsonRecord, overriders: Overriders) => JsonRecord;
}

/** Every overrider, in the order in which they are applied: Karmada's, with ours before those that can change anything. */
const STEPS: readonly Step[] = [
  each('imageOverrider', overrideImages),
  each('commandOverrider', (object, overrider) => overrideWords(object, 'command', overrider)),
  each('argsOverrider', (object, overrider) => overrideWords(object, 'args', overrider)),
  each('labelsOverrider', (object, overrider) => overrideMetadata(object, 'labels', overrider)),
  each('annotationsOverrider', (object, overrider) => overrideMetadata(object, 'annotations', overrider)),
  each('envOverrider', overrideEnv),
  each('resourcesOverrider', overrideResources),
  each('initContainersOverrider', overrideInitContainers),
  each('imagePullSecretsOverrider', overridePullSecrets),
  each('tolerationsOverrider', overrideTolerations),
  each('nodeSelectorOverrider', overrideNodeSelector),
  each('serviceAccountOverrider', overrideServiceAccount),
  each('runtimeClassOverrider', overrideRuntimeClass),
  each('storageClassOverrider', overrideStorageClass),
  each('fieldOverrider', overrideField),
  each('plaintext', (object, { path, operator, value }) => {
    const place = objectPath(object, path);
    return applyPatchOperation(object, { operator, path: place, value }) as JsonRecord;
  }),
];

/** One kind of overrider, given as a list or alone. */
function each<K extends keyof Overriders>(
  name: K,
  step: (object: JsonRecord, overrider: Overrider<K>) => JsonRecord,
): Step {
  const run = (object: JsonRecord, overriders: Overriders): JsonRecord => {
    const given: unknown = overriders[name];
    if (given === undefined) return object;
    const list = Array.isArray(given) ? (given as readonly Overrider<K>[]) : [given as Overrider<K>];
    let current = object;
    for (const [index, overrider] of list.entries()) {
      try {
        current = step(current, overrider);
      } catch (error) {
        if (!(error instanceof OverrideError)) throw error;
        const place = Array.isArray(given) ? `${name}[${index}]` : name;
        throw new OverrideError(error.path === '' ? place : `${place} at ${error.path}`, error.message);
      }
    }
    return current;
  };
  return { name, run };
}

/**
 * The object with all overriders of a rule applied, and the names of those that changed something. Parts that stay are
 * shared with the object given, which is not changed.
 *
 * @throws OverrideError whose path begins with the overrider's place in the rule.
 */
export function applyOverriders(object: JsonRecord, overriders: Overriders): { object: JsonRecord; changes: string[] } {
  let current = object;
  const changes: string[] = [];
  for (const { name, run } of STEPS) {
    const before = current;
    current = run(current, overriders);
    if (current !== before) changes.push(name);
  }
  return { object: current, changes };
}
