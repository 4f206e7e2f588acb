import type { KubeObject } from '../../kube/object.ts';
import { objectsIn } from '../manifests.ts';
import { packagedFile } from '../packaged-files.ts';

/** One object of the manifests that came with this program. */
export interface Manifest extends KubeObject {
  kind: string;
  rules?: { apiGroups: string[]; resources: string[]; resourceNames?: string[]; verbs: string[] }[];
  roleRef?: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace: string }[];
}

/** The objects of a file below manifests/; undefined: they did not come along. */
export function manifestsOf(file: string): Manifest[] | undefined {
  const text = packagedFile(`manifests/${file}`)?.toString();
  return text === undefined ? undefined : objectsIn(text);
}
