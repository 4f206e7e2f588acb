import type { Logger } from 'pino';
import { MEMBER_LABEL, NODE_LABEL } from '../api/marks.ts';
import type { Node } from '../kube/core-v1.ts';
import type { Access, Credentials } from '../kube/access.ts';
import { AutoResetEvent } from '../kube/auto-reset-event.ts';
import { newNodeRequest } from '../kube/certificate-key.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeError, isForbidden, isNotFound, isUnauthorized } from '../kube/errors.ts';
import { ifThere } from '../kube/if-there.ts';
import { IssuedCertificate } from '../kube/issued-certificate.ts';
import type { KeyedCertificate } from '../kube/keyed-certificate.ts';
import { NODES } from '../kube/resource.ts';
import { staticAccess } from '../kube/static-access.ts';
import { get } from '../kube/verbs.ts';
import type { NodeOwner } from './node-changes.ts';
import { NodeCredentials, type Speaker } from './node-credentials.ts';
import type { NodeIdentityMetrics } from './node-identity-metrics.ts';
import type { NodeStanding } from './node-standing.ts';

/** `Auto`: a certificate, and where there is none the manager's own identity, if that may do what a node does. */
export type HostIdentityMode = 'Auto' | 'NodeCertificate' | 'ServiceAccount';

export interface NodeIdentityOptions {
  owner: NodeOwner;
  /** Told of the Node when it is read here. */
  standing: NodeStanding;
  mode: HostIdentityMode;
  /** With the manager's own identity: asks for certificates, and looks who has the Node's name. */
  manager: KubeClient;
  access: Access;
  /** A client of the host with these credentials. */
  connect: (credentials: Credentials) => KubeClient;
  metrics: NodeIdentityMetrics;
  logger: Logger;
  /** Wall clock in ms. */
  clock?: () => number;
  /** In ms. */
  monotonic?: () => number;
  /** Between the first looks at an open request, in ms; 50. */
  firstPollMs?: number;
  /** Until the manager stands in for a certificate that takes long, and between attempts that failed at first; 10,000. */
  patienceMs?: number;
}

const SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
/** It cannot be revoked and is asked for anew at each start, so it need not last; long enough for a signer that fails over a weekend. */
const LIFE_SECONDS = 7 * 24 * 3600;
const FIRST_POLL_MS = 50;
const PATIENCE_MS = 10_000;
const SLOWEST_RETRY_MS = 3_600_000;
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** What a node does that nobody else should need to: whoever may do this may stand in for it. */
const NODE_WORK = [
  { verb: 'list', resource: 'pods' },
  { verb: 'patch', resource: 'pods', subresource: 'status' },
  { verb: 'patch', resource: 'nodes', subresource: 'status' },
];

/**
 * Whom a virtual node is towards the host: `system:node:NAME` by a client certificate that it asks for itself, so that
 * the host's Node authorizer limits it to its own Node and pods and to what these refer to. Asked for once per start
 * and at 70 % of its life; the key never leaves this process.
 */
export class NodeIdentity {
  /** For everything that the node does in the host. Requests fail until {@link ready}. */
  readonly client: KubeClient;
  readonly #o: NodeIdentityOptions;
  readonly #certificate: IssuedCertificate;
  readonly #attempted = new AutoResetEvent();
  readonly #clock: () => number;
  #standsIn = false;
  #considered = false;
  readonly #usable = new AbortController();

  constructor(options: NodeIdentityOptions) {
    const { owner, access, connect, logger, mode, metrics } = options;
    this.#o = options;
    this.#clock = options.clock ?? Date.now;
    this.#standsIn = mode === 'ServiceAccount';
    const speaker = (): Speaker => this.#speaker();
    this.client = connect(new NodeCredentials(access.credentials, speaker, () => this.#certificate.refused()));
    this.#certificate = new IssuedCertificate({
      host: options.manager,
      what: 'client certificate',
      node: owner.name,
      signing: {
        signer: SIGNER,
        usages: ['digital signature', 'client auth'],
        expirationSeconds: LIFE_SECONDS,
        labels: { [MEMBER_LABEL]: owner.member, [NODE_LABEL]: owner.name },
      },
      newRequest: () => newNodeRequest(owner.name),
      mayAsk: (signal) => this.#checkName(signal),
      check: (issued, signal) => this.#checkUse(issued, signal),
      meanwhile: mode === 'Auto' ? "the manager's own identity, if it may," : 'nothing',
      logger,
      clock: this.#clock,
      ...(options.monotonic === undefined ? {} : { monotonic: options.monotonic }),
      firstPollMs: options.firstPollMs ?? FIRST_POLL_MS,
      firstRetryMs: options.patienceMs ?? PATIENCE_MS,
      slowestRetryMs: SLOWEST_RETRY_MS,
    });
    metrics.follow(owner.name, () => (this.#speaker().as === 'node' ? this.#certificate.expiresAt / 1000 : 0));
  }

  /** Why the node cannot do anything in the host, for people; undefined while it can. */
  get problem(): string | undefined {
    const speaker = this.#speaker();
    return speaker.as === 'nobody' ? speaker.why : undefined;
  }

  /** Whether {@link problem} is only that nothing has come yet of what was asked for at the start, which may take a moment. */
  get asking(): boolean {
    return !this.#considered && this.problem !== undefined;
  }

  /** Resolves once the node can speak for itself or the manager for it, or when the signal aborts. */
  async ready(signal: AbortSignal): Promise<void> {
    const usable = this.#usable.signal;
    if (signal.aborted || usable.aborted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        signal.removeEventListener('abort', end);
        usable.removeEventListener('abort', end);
        resolve();
      };
      signal.addEventListener('abort', end);
      usable.addEventListener('abort', end);
    });
  }

  /** Keeps the certificate fresh until the signal aborts. Never rejects. The client stays open until {@link close}. */
  async run(signal: AbortSignal): Promise<void> {
    const { mode, patienceMs = PATIENCE_MS } = this.#o;
    if (mode === 'ServiceAccount') {
      this.#usable.abort();
      return;
    }
    const off = this.#certificate.onAttempt(() => this.#attempted.set());
    const work = this.#certificate.run(signal);
    while (!signal.aborted) {
      const waiting = this.#speaker().as === 'nobody';
      await this.#attempted.wait(signal, waiting ? patienceMs : undefined);
      if (signal.aborted) break;
      await this.#consider(signal);
    }
    await work;
    off();
  }

  async close(): Promise<void> {
    this.#o.metrics.forget(this.#o.owner.name);
    await this.client.close();
  }

  #speaker(): Speaker {
    const certificate = this.#certificate.current();
    if (certificate !== undefined) return { as: 'node', certificate };
    if (this.#standsIn) return { as: 'manager' };
    const { owner, mode } = this.#o;
    const problem = this.#certificate.problem ?? 'the request has not been answered yet';
    const otherwise =
      mode === 'Auto' ? ', and the manager itself may not do what nodes do (manifests/rbac-service-account.yaml)' : '';
    const why = `Virtual node "${owner.name}" has no client certificate for the host: ${problem}${otherwise}. It is tried again by itself.`;
    return { as: 'nobody', why };
  }

  /** After an attempt, or when one takes long: lets the manager stand in where it may and has to. */
  async #consider(signal: AbortSignal): Promise<void> {
    const { mode, logger, owner } = this.#o;
    if (this.#certificate.current() === undefined && mode === 'Auto' && !this.#standsIn) {
      this.#standsIn = await this.#mayStandIn(signal);
      if (this.#standsIn) {
        logger.warn(
          { node: owner.name, problem: this.#certificate.problem ?? 'not issued yet' },
          "the virtual node works with the manager's own identity until it has a client certificate of its own",
        );
      }
    }
    this.#considered = true;
    if (this.#speaker().as !== 'nobody') this.#usable.abort();
  }

  async #mayStandIn(signal: AbortSignal): Promise<boolean> {
    try {
      const answers = await Promise.all(
        NODE_WORK.map(async (resourceAttributes) => {
          const body = {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SelfSubjectAccessReview',
            spec: { resourceAttributes },
          };
          const request = { method: 'POST', path: REVIEWS, body, signal, deadlineMs: 5_000 } as const;
          return await this.#o.manager.request<{ status?: { allowed?: boolean } }>(request);
        }),
      );
      return answers.every(({ status }) => status?.allowed === true);
    } catch (error) {
      this.#o.logger.debug({ node: this.#o.owner.name }, `not known what the manager may do: ${describeError(error)}`);
      return false;
    }
  }

  /** A certificate opens everything that the Node of that name has: none is asked for in the name of a stranger. */
  async #checkName(signal: AbortSignal): Promise<void> {
    const { manager, owner, standing } = this.#o;
    const refusal = standing.hear(await ifThere(get<Node>(manager, NODES, { name: owner.name }, { signal })));
    if (refusal !== undefined) throw new Error(refusal.message);
  }

  /** A signer's word is worth only what the API server makes of it. */
  async #checkUse(issued: KeyedCertificate, signal: AbortSignal): Promise<void> {
    const { access, connect, owner } = this.#o;
    const client = connect(staticAccess({ endpoint: access.endpoint, ...issued }).credentials);
    try {
      await get<Node>(client, NODES, { name: owner.name }, { signal });
    } catch (error) {
      if (isUnauthorized(error)) {
        throw new Error('the API server does not accept certificates of this signer', { cause: error });
      }
      if (isForbidden(error)) {
        throw new Error('the API server does not let nodes work (its --authorization-mode has no Node)', {
          cause: error,
        });
      }
      if (!isNotFound(error)) throw error;
    } finally {
      await client.close();
    }
  }
}
