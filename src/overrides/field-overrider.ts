import type { Overrider } from '../api/overriders.ts';
import { parseJson, stringifyJson } from '../kube/json.ts';
import type { JsonRecord } from '../kube/json-fields.ts';
import { applyPatchOperation, type PatchOperation } from './json-patch.ts';
import { parsePointer, valueAt } from './json-pointer.ts';
import { objectPath } from './object-path.ts';
import { OverrideError } from './override-error.ts';
import { patchYaml } from './yaml-patch.ts';

type FieldOverrider = Overrider<'fieldOverrider'>;

/** Changes JSON or YAML in a string of the object. Values under `data` of a Secret are decoded before and encoded after. */
export function overrideField(object: JsonRecord, overrider: FieldOverrider): JsonRecord {
  const path = objectPath(object, overrider.fieldPath);
  const segments = parsePointer(path) ?? [];
  const value = valueAt(object, segments);
  if (typeof value !== 'string') throw new OverrideError(path, 'there is no text at that path');
  const encoded = object['kind'] === 'Secret' && segments[0] === 'data';
  const before = encoded ? decoded(value, path) : value;
  const after = atField(path, () => patchedText(before, overrider));
  if (after === before) return object;
  const written = encoded ? Buffer.from(after).toString('base64') : after;
  return applyPatchOperation(object, { operator: 'replace', path, value: written }) as JsonRecord;
}

function decoded(base64: string, path: string): string {
  const bytes = Buffer.from(base64, 'base64');
  const text = bytes.toString();
  if (!Buffer.from(text).equals(bytes)) throw new OverrideError(path, 'the value there is not text');
  return text;
}

function patchedText(text: string, overrider: FieldOverrider): string {
  const { json, yaml } = overrider;
  if (yaml !== undefined && yaml.length > 0) return patchYaml(text, yaml.map(asOperation));
  if (json === undefined || json.length === 0) return text;
  let document: unknown;
  try {
    document = parseJson(text);
  } catch {
    // The parser's words repeat the text, which may be secret.
    throw new OverrideError('', 'the text there is not valid JSON');
  }
  return stringifyJson(json.reduce((value, operation) => applyPatchOperation(value, asOperation(operation)), document));
}

type FieldOperation = NonNullable<FieldOverrider['json']>[number];

function asOperation({ subPath, operator, value }: FieldOperation): PatchOperation {
  return { operator, path: subPath, value };
}

/** Errors inside the text name both places. Anything the parsers throw by themselves says no more than that they failed. */
function atField<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof OverrideError)) throw new OverrideError(path, 'the text there cannot be read');
    throw new OverrideError(error.path === '' ? path : `${path} -> ${error.path}`, error.message);
  }
}
