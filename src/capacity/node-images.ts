import type { Node } from '../kube/core-v1.ts';
import { parseImage } from '../kube/image-reference.ts';

/** Which images the nodes of a cluster have, as their kubelets report it (the largest 50, unless configured otherwise). */
export class NodeImages {
  readonly #byNode = new Map<string, readonly string[]>();
  /** Nodes by image. */
  readonly #counts = new Map<string, number>();

  /** Handlers for an informer of the nodes. */
  readonly nodeHandler = {
    added: (node: Node): void => this.#set(node),
    updated: (node: Node): void => this.#set(node),
    deleted: (node: Node): void => this.#put(node.metadata.name, undefined),
  };

  /** How much of the images the nodes have, 0 to 100: of each image the share of nodes. Undefined without nodes or images. */
  share(images: readonly string[]): number | undefined {
    const nodes = this.#byNode.size;
    if (nodes === 0 || images.length === 0) return undefined;
    const shares = images.map((image) => (this.#counts.get(imageName(image)) ?? 0) / nodes);
    return (100 * shares.reduce((sum, share) => sum + share, 0)) / images.length;
  }

  #set({ metadata, status }: Node): void {
    const names = (status?.images ?? []).flatMap((image) => image.names ?? []);
    const before = this.#byNode.get(metadata.name);
    if (before?.length === names.length && before.every((name, index) => name === names[index])) return;
    this.#put(metadata.name, names);
  }

  #put(node: string, names: readonly string[] | undefined): void {
    this.#count(this.#byNode.get(node) ?? [], -1);
    if (names === undefined) this.#byNode.delete(node);
    else this.#byNode.set(node, names);
    this.#count(names ?? [], 1);
  }

  #count(names: readonly string[], change: 1 | -1): void {
    for (const name of new Set(names)) {
      const after = (this.#counts.get(name) ?? 0) + change;
      if (after === 0) this.#counts.delete(name);
      else this.#counts.set(name, after);
    }
  }
}

/** An image as container runtimes name it: with registry, and with a tag or a digest. */
function imageName(image: string): string {
  const parsed = parseImage(image);
  if (parsed === undefined) return image;
  const { registry, repository, tag, digest } = parsed;
  const path = registry === '' && !repository.includes('/') ? `library/${repository}` : repository;
  const name = `${registry === '' ? 'docker.io' : registry}/${path}`;
  return digest === '' ? `${name}:${tag === '' ? 'latest' : tag}` : `${name}@${digest}`;
}
