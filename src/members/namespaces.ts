import { ALLOW_HOST_LABEL, HOST_LABEL, HOST_NAMESPACE_ANNOTATION } from '../api/marks.ts';
import type { MemberClusterSpec } from '../api/member-cluster.ts';
import { memberNamespaceFor } from '../api/namespace-mapping.ts';
import { ENFORCE_LABEL } from '../api/pod-security.ts';
import type { Namespace } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { monotonic } from '../kube/clock.ts';
import { ApiError, describeError, isAlreadyExists, isForbidden, isNotFound, isPermanent } from '../kube/errors.ts';
import { NAMESPACES } from '../kube/resource.ts';
import { create, get } from '../kube/verbs.ts';

/** How long a namespace that we made is taken for there although the watch has not shown it, in ms. */
const MADE_MS = 15_000;

/** What manifests/member/guard.yaml says to any Pod Security level in members where it is of a version before `podSecurity`. */
const NO_LEVELS = /spillway-host-namespace-guard.*how secure pods have to be is not for hosts to say/s;

/** Why no pod of a namespace can be in the member at the moment: a CamelCase reason, and words for people. */
export interface NamespaceHold {
  reason:
    | 'NamespaceNotAllowed'
    | 'NamespaceTerminating'
    | 'NamespaceMissing'
    | 'NamespaceCreateForbidden'
    | 'MemberIdentityChanged'
    | 'MemberUnavailable';
  message: string;
}
export type NamespaceAnswer = { namespace: string } | { hold: NamespaceHold };

export interface MemberNamespacesOptions {
  member: {
    readonly name: string;
    readonly client: KubeClient;
    readonly namespaces: { get(name: string): Namespace | undefined; values(): Iterable<Namespace> };
    confirmIdentity(signal: AbortSignal): Promise<boolean>;
  };
  hostId: string;
  /** Asked each time, so that an edited MemberCluster counts at once. */
  spec: () => MemberClusterSpec['namespaces'];
}

/**
 * Which namespace of the member stands for a namespace of the host, and whether it may be used: ours by label, lent to
 * us by the member's owner, or made by us now. Nothing else is ever touched.
 */
export class MemberNamespaces {
  readonly #o: MemberNamespacesOptions;
  /** Creations under way, by the member's namespace: a thousand new pods ask for one namespace at the same time. */
  readonly #creating = new Map<string, Promise<NamespaceAnswer>>();
  /** Made by us a moment ago and perhaps not in the cache yet. */
  readonly #made = new Map<string, { namespace: Namespace; at: number }>();

  constructor(options: MemberNamespacesOptions) {
    this.#o = options;
  }

  /** Where pods of a host namespace are in the member; undefined where they may never be. No calls. */
  memberNamespaceOf(hostNamespace: string): string | undefined {
    const mapped = memberNamespaceFor(this.#o.spec(), hostNamespace);
    return 'namespace' in mapped ? mapped.namespace : undefined;
  }

  /**
   * Where pods of a host namespace may be in the member: {@link memberNamespaceOf}, and those that were made for it before the
   * mapping was edited. No calls.
   */
  everUsedFor(hostNamespace: string): string[] {
    const found = new Set<string>();
    const now = this.memberNamespaceOf(hostNamespace);
    if (now !== undefined) found.add(now);
    for (const { metadata } of this.#o.member.namespaces.values()) {
      const { name, labels, annotations } = metadata;
      if (labels?.[HOST_LABEL] !== this.#o.hostId) continue;
      if (annotations?.[HOST_NAMESPACE_ANNOTATION] === hostNamespace) found.add(name);
    }
    return [...found];
  }

  /** Whether a namespace of the member is ours: made by us, or lent to us. */
  isUsable({ metadata: { labels = {} } }: Namespace): boolean {
    const owner = labels[HOST_LABEL];
    return owner === undefined ? this.#isLent(labels) : owner === this.#o.hostId;
  }

  /**
   * {@link memberNamespaceOf}, made sure to exist and to be ours to use. One call at most per new namespace; rejects only on
   * abort.
   * @param former another one, in which pods of the host namespace are since before the mapping was edited: it is not made
   */
  async ensure(hostNamespace: string, signal: AbortSignal, former?: string): Promise<NamespaceAnswer> {
    const mapped = memberNamespaceFor(this.#o.spec(), hostNamespace);
    if (former !== undefined && !('namespace' in mapped && mapped.namespace === former)) {
      const found = this.#o.member.namespaces.get(former);
      if (found !== undefined) return this.#judge(found, hostNamespace);
      return this.#hold('NamespaceMissing', `namespace ${former}, where pods of the former mapping are, is not known.`);
    }
    if ('refused' in mapped) return this.#hold('NamespaceNotAllowed', `${mapped.refused}.`);
    const { namespace } = mapped;
    const cached = this.#o.member.namespaces.get(namespace);
    const made = this.#made.get(namespace);
    if (made !== undefined && (cached !== undefined || monotonic() - made.at > MADE_MS)) this.#made.delete(namespace);
    const found = cached ?? this.#made.get(namespace)?.namespace;
    if (found !== undefined) return this.#judge(found, hostNamespace);
    if (!this.#o.spec().create) {
      return this.#hold(
        'NamespaceMissing',
        `namespace ${namespace} does not exist there and spec.namespaces.create is false; ` +
          `its owner has to create it with the label ${ALLOW_HOST_LABEL}=${this.#o.hostId}.`,
      );
    }
    const underWay = this.#creating.get(namespace);
    if (underWay !== undefined) return await underWay;
    const creating = this.#create(namespace, hostNamespace, signal).finally(() => this.#creating.delete(namespace));
    this.#creating.set(namespace, creating);
    return await creating;
  }

  async #create(name: string, hostNamespace: string, signal: AbortSignal): Promise<NamespaceAnswer> {
    const { client } = this.#o.member;
    try {
      // A member that lost everything lacks all namespaces: it may well be another cluster by now.
      if (!(await this.#o.member.confirmIdentity(signal))) {
        return this.#hold('MemberIdentityChanged', 'another cluster answers in its place; nothing is written there.');
      }
      const made = await this.#make(client, this.#render(name, hostNamespace), signal);
      this.#made.set(name, { namespace: made, at: monotonic() });
      return this.#judge(made, hostNamespace);
    } catch (error) {
      signal.throwIfAborted();
      if (!isAlreadyExists(error)) return this.#refused(name, error);
    }
    try {
      return this.#judge(await get<Namespace>(client, NAMESPACES, { name }, { signal }), hostNamespace);
    } catch (error) {
      signal.throwIfAborted();
      return this.#refused(name, error);
    }
  }

  /** Without a level where the guard of the member is of a version that takes none: condition PodSecuritySet tells of that. */
  async #make(client: KubeClient, wanted: Namespace, signal: AbortSignal): Promise<Namespace> {
    try {
      return await create<Namespace>(client, NAMESPACES, wanted, { signal });
    } catch (error) {
      if (!(error instanceof ApiError && NO_LEVELS.test(error.status.message ?? ''))) throw error;
      const { [ENFORCE_LABEL]: _level, ...labels } = wanted.metadata.labels ?? {};
      return await create<Namespace>(
        client,
        NAMESPACES,
        { ...wanted, metadata: { ...wanted.metadata, labels } },
        { signal },
      );
    }
  }

  #render(name: string, hostNamespace: string): Namespace {
    return {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name,
        labels: { [HOST_LABEL]: this.#o.hostId, [ENFORCE_LABEL]: this.#o.spec().podSecurity },
        annotations: { [HOST_NAMESPACE_ANNOTATION]: hostNamespace },
      },
    };
  }

  #judge(found: Namespace, hostNamespace: string): NamespaceAnswer {
    const { name, labels = {}, annotations = {}, deletionTimestamp } = found.metadata;
    const { hostId } = this.#o;
    const owner = labels[HOST_LABEL];
    if (owner !== undefined && owner !== hostId) {
      return this.#hold('NamespaceNotAllowed', `namespace ${name} there belongs to another host (${owner}).`);
    }
    const standsFor = annotations[HOST_NAMESPACE_ANNOTATION];
    if (owner === hostId && standsFor !== undefined && standsFor !== hostNamespace) {
      return this.#hold('NamespaceNotAllowed', `namespace ${name} there already stands for namespace ${standsFor}.`);
    }
    if (owner === undefined && !this.#isLent(labels)) {
      return this.#hold(
        'NamespaceNotAllowed',
        `namespace ${name} exists there and is not ours. To lend it, its owner runs: ` +
          `kubectl label namespace ${name} ${ALLOW_HOST_LABEL}=${hostId}` +
          (this.#o.spec().adoptExisting ? '' : ' (and spec.namespaces.adoptExisting must be true)'),
      );
    }
    if (deletionTimestamp !== undefined || found.status?.phase === 'Terminating') {
      return this.#hold(
        'NamespaceTerminating',
        `namespace ${name} there is being deleted; it is tried again once it is gone.`,
      );
    }
    return { namespace: name };
  }

  #isLent(labels: Record<string, string>): boolean {
    const allowed = labels[ALLOW_HOST_LABEL];
    return this.#o.spec().adoptExisting && (allowed === this.#o.hostId || allowed === 'any');
  }

  #refused(name: string, error: unknown): NamespaceAnswer {
    if (isForbidden(error) || isDenied(error) || isPermanent(error)) {
      return this.#hold(
        'NamespaceCreateForbidden',
        `namespace ${name} does not exist there and may not be created: ${describeError(error)}. Create it with the label ` +
          `${ALLOW_HOST_LABEL}=${this.#o.hostId}, or allow the creation.`,
      );
    }
    if (isNotFound(error)) {
      return this.#hold('NamespaceTerminating', `namespace ${name} was just removed there; it is tried again.`);
    }
    return this.#hold(
      'MemberUnavailable',
      `namespace ${name} cannot be made sure of: ${describeError(error)}. It is tried again.`,
    );
  }

  #hold(reason: NamespaceHold['reason'], words: string): { hold: NamespaceHold } {
    return { hold: { reason, message: `Cluster "${this.#o.member.name}": ${words}` } };
  }
}

/** By an admission policy, which answers 422 by default, or a webhook, which answers whatever it likes. */
function isDenied(error: unknown): boolean {
  return error instanceof ApiError && / denied (the )?request/.test(error.status.message ?? '');
}
