import { z } from 'zod';
import type { KubeClient } from './client.ts';
import { isNotFound } from './errors.ts';
import type { Resource } from './resource.ts';

/** That a group is not there is believed for so long, in ms. */
const GROUPS_MS = 10_000;
/** That a group that is there has no such kind is believed for so long, in ms. */
const KINDS_MS = 30_000;
/** Servers behind the API server may hang. */
const REQUEST_MS = 5_000;

const groupList = z.object({
  groups: z
    .array(z.object({ name: z.string(), versions: z.array(z.object({ version: z.string() })).max(100) }))
    .max(10_000),
});

const kindList = z.object({
  resources: z
    .array(z.object({ name: z.string(), kind: z.string(), namespaced: z.boolean(), verbs: z.array(z.string()) }))
    .max(10_000),
});

/** What a cluster serves of one group in one version. */
interface Served {
  readonly at: number;
  readonly kinds: ReadonlyMap<string, Resource>;
}

/**
 * Which kinds of API groups a cluster serves, read when somebody asks: first which groups there are, then what is in the one. Names that
 * were made up cost a request now and then, however many they are.
 */
export class KindDirectory {
  readonly #client: Pick<KubeClient, 'request'>;
  readonly #monotonic: () => number;
  /** `group/version`. */
  #groups: { readonly at: number; readonly versions: ReadonlySet<string> } | undefined;
  readonly #served = new Map<string, Served>();

  /** `monotonic` in ms. */
  constructor(client: Pick<KubeClient, 'request'>, monotonic: () => number) {
    this.#client = client;
    this.#monotonic = monotonic;
  }

  /** As far as it is known: undefined has to be asked ({@link find}), null is not there. */
  known(apiVersion: string, kind: string): Resource | null | undefined {
    const served = this.#served.get(apiVersion);
    const found = served?.kinds.get(kind);
    if (found !== undefined) return found;
    const groups = this.#groups;
    if (groups === undefined) return undefined;
    if (!groups.versions.has(apiVersion)) return this.#isFresh(groups.at, GROUPS_MS) ? null : undefined;
    return served !== undefined && this.#isFresh(served.at, KINDS_MS) ? null : undefined;
  }

  /** Reads which groups there are, if that is not known or a while ago. Throws what the server answers. */
  async lookAtGroups(signal: AbortSignal): Promise<void> {
    if (this.#groups !== undefined && this.#isFresh(this.#groups.at, GROUPS_MS)) return;
    const answer = await this.#client.request({ path: '/apis', deadlineMs: REQUEST_MS, signal });
    const { groups } = groupList.parse(answer);
    const versions = groups.flatMap(({ name, versions: of }) => of.map(({ version }) => `${name}/${version}`));
    this.#groups = { at: this.#monotonic(), versions: new Set(versions) };
    for (const gone of [...this.#served.keys()].filter((one) => this.#groups?.versions.has(one) === false)) {
      this.#served.delete(gone);
    }
  }

  /** Whether the cluster did not serve the kind when that was last looked at, however long ago. */
  wasAbsent(apiVersion: string, kind: string): boolean {
    if (this.#groups === undefined) return false;
    const served = this.#served.get(apiVersion);
    return !this.hasGroup(apiVersion) || (served !== undefined && !served.kinds.has(kind));
  }

  /** Whether the cluster has such a group, as far as is known. */
  hasGroup(apiVersion: string): boolean {
    return this.#groups?.versions.has(apiVersion) === true;
  }

  /**
   * How a kind of a group that is there is addressed; undefined for one that is not there, or cannot be listed and watched. Throws
   * what the server answers.
   */
  async find(apiVersion: string, kind: string, signal: AbortSignal): Promise<Resource | undefined> {
    if (this.known(apiVersion, kind) === undefined && this.hasGroup(apiVersion)) {
      await this.#readKinds(apiVersion, signal);
    }
    return this.known(apiVersion, kind) ?? undefined;
  }

  /** What is there of a version is to be read again. */
  forget(apiVersion: string): void {
    this.#served.delete(apiVersion);
  }

  async #readKinds(apiVersion: string, signal: AbortSignal): Promise<void> {
    const [group = '', version = ''] = apiVersion.split('/');
    const path = `/apis/${encodeURIComponent(group)}/${encodeURIComponent(version)}`;
    const kinds = new Map<string, Resource>();
    try {
      const { resources } = kindList.parse(await this.#client.request({ path, deadlineMs: REQUEST_MS, signal }));
      for (const { name: plural, kind, namespaced, verbs } of resources) {
        // Subresources have kinds, too.
        if (plural.includes('/') || !verbs.includes('list') || !verbs.includes('watch')) continue;
        kinds.set(kind, { group, version, kind, plural, namespaced });
      }
    } catch (error) {
      // Gone since the groups were read.
      if (!isNotFound(error)) throw error;
    }
    this.#served.set(apiVersion, { at: this.#monotonic(), kinds });
  }

  #isFresh(at: number, ms: number): boolean {
    return this.#monotonic() - at < ms;
  }
}
