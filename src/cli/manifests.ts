import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../kube/object.ts';
import { packagedFile, packagedFolder } from './packaged-files.ts';

/** An object that a manifest asks for. */
export interface ManifestObject extends KubeObject {
  apiVersion: string;
  kind: string;
}

/** The text of a file below manifests/, which are packaged with the program: what it applies is what an administrator would. */
export function manifestText(file: string): string {
  const text = packagedFile(`manifests/${file}`)?.toString();
  if (text === undefined) throw new Error(`this program was packaged without manifests/${file}`);
  return text;
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
  const names = packagedFolder(`manifests/${folder}`);
  if (names === undefined) throw new Error(`this program was packaged without manifests/${folder}`);
  return names
    .filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
    .map((name) => `${folder}/${name}`);
}
