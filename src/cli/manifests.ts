import { readdirSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../kube/object.ts';

/** An object that a manifest asks for. */
export interface ManifestObject extends KubeObject {
  apiVersion: string;
  kind: string;
}

/** Beside `src/` when run from source, one level further up when built. */
const PLACES = ['../../manifests/', '../../../manifests/'];

/** The text of a file below manifests/, which are packaged with the program: what it applies is what an administrator would. */
export function manifestText(file: string): string {
  for (const place of PLACES) {
    try {
      return readFileSync(new URL(`${place}${file}`, import.meta.url), 'utf8');
    } catch {
      continue;
    }
  }
  throw new Error(`this program was packaged without manifests/${file}`);
}

/** The objects of a file below manifests/. */
export function manifestObjects(file: string): ManifestObject[] {
  return objectsIn(manifestText(file));
}

export function objectsIn(text: string): ManifestObject[] {
  return parseAllDocuments(text).map((document) => document.toJS() as ManifestObject);
}

/** Names of the files in a folder below manifests/, such as `crds`, in the order of the alphabet. */
export function manifestFiles(folder: string): string[] {
  for (const place of PLACES) {
    try {
      const names = readdirSync(new URL(`${place}${folder}/`, import.meta.url));
      return names
        .filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
        .toSorted()
        .map((name) => `${folder}/${name}`);
    } catch {
      continue;
    }
  }
  throw new Error(`this program was packaged without manifests/${folder}`);
}
