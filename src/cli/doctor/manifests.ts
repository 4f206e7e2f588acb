import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../kube/object.ts';

/** One object of the manifests that came with this program. */
export interface Manifest extends KubeObject {
  kind: string;
  rules?: { apiGroups: string[]; resources: string[]; resourceNames?: string[]; verbs: string[] }[];
  roleRef?: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace: string }[];
}

/** The objects of a file below manifests/, beside `src/` or, when built, beside `dist/`; undefined: they did not come along. */
export function manifestsOf(file: string): Manifest[] | undefined {
  for (const place of ['../../../manifests/', '../../../../manifests/']) {
    const path = fileURLToPath(new URL(place + file, import.meta.url));
    if (existsSync(path)) return parseAllDocuments(readFileSync(path, 'utf8')).map((one) => one.toJS() as Manifest);
  }
  return undefined;
}
