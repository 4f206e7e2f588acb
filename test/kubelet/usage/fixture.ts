import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { Pod } from '../../../src/kube/core-v1.ts';
import { ApiError, TransportError } from '../../../src/kube/errors.ts';
import type { UsageClient } from '../../../src/kubelet/usage/member-kubelets.ts';
import { usageMetrics } from '../../../src/kubelet/usage/metrics.ts';
import { PodUsage } from '../../../src/kubelet/usage/pod-usage.ts';
import type { UsageTarget } from '../../../src/kubelet/usage/usage-target.ts';
import { hostPod, memberPod } from '../../fixtures/pods.ts';

export function golden(name: string): string {
  return readFileSync(new URL(`golden/${name}`, import.meta.url), 'utf8');
}

/** A host pod `shop/NAME` whose copy is `p-shop/NAME` on a node of the member. */
export function target(name: string, memberNode = 'real-1', status: Pod['status'] = { phase: 'Running' }): UsageTarget {
  return {
    hostPod: hostPod({ metadata: { name, namespace: 'shop', uid: `host-${name}` } }),
    memberPod: memberPod({ metadata: { name, namespace: 'p-shop', uid: `member-${name}` }, status }),
    memberKey: `p-shop/${name}`,
    memberNode,
  };
}

export type Script = (path: string, query: Record<string, string>) => unknown;

/** What a member answers; `unknown` values are text, JSON, or an error to throw; a promise is waited for. */
export class ScriptedMember implements UsageClient {
  readonly cluster = 'east';
  readonly asked: string[] = [];
  script: Script = (path) => notFound(path);
  gzip = false;

  async stream(request: { path: string; query?: Record<string, string>; gzip: boolean; signal: AbortSignal }) {
    const answer = await this.#answer(request.path, request.query ?? {}, request.signal);
    const bytes = Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer));
    const body = this.gzip && request.gzip ? gzipSync(bytes) : bytes;
    // In small pieces, so that every line is cut somewhere.
    const pieces = Array.from({ length: Math.ceil(body.length / 700) }, (_, index) =>
      body.subarray(index * 700, index * 700 + 700),
    );
    return { headers: this.gzip ? { 'content-encoding': 'gzip' } : {}, body: Readable.from(pieces) };
  }

  async request(request: { path: string; query?: Record<string, string>; signal: AbortSignal }): Promise<unknown> {
    return await this.#answer(request.path, request.query ?? {}, request.signal);
  }

  async #answer(path: string, query: Record<string, string>, signal: AbortSignal): Promise<unknown> {
    this.asked.push(path);
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
    const answer = await Promise.race([this.script(path, query), aborted]);
    if (answer instanceof Error) throw answer;
    return answer;
  }
}

const error = (path: string, code: number, reason: string): ApiError =>
  new ApiError({ cluster: 'east', method: 'GET', path, code, status: { kind: 'Status', code, reason } });

/** As an API server says it; a kubelet has no reason. */
export const forbidden = (path: string, reason = 'Forbidden'): ApiError => error(path, 403, reason);
export const notFound = (path: string): ApiError => error(path, 404, '');
export const broken = (path: string): TransportError =>
  new TransportError({ cluster: 'east', kind: 'reset', method: 'GET', path, detail: 'connection reset' });

/** What a test may change at any time. */
export interface World {
  targets: UsageTarget[];
  /** Both clocks, in ms. */
  now: number;
  /** How far the wall clock is behind. */
  setBackMs: number;
  unavailable: string | undefined;
  annotations: Map<string, Record<string, string>>;
}

export interface UsageFixture {
  usage: PodUsage;
  member: ScriptedMember;
  registry: Registry;
  lines: string[];
  world: World;
  stop(): Promise<void>;
}

export function usageFixture(targets: UsageTarget[]): UsageFixture {
  const world: World = {
    targets,
    now: 1_795_253_470_000,
    setBackMs: 0,
    unavailable: undefined,
    annotations: new Map(),
  };
  const member = new ScriptedMember();
  const registry = new Registry();
  const lines: string[] = [];
  const usage = new PodUsage({
    nodeName: 'east',
    member: 'east',
    client: member,
    targets: () => world.targets,
    selector: 'spillway.dev/node=east',
    annotationsOf: (node) => world.annotations.get(node),
    unavailable: () => world.unavailable,
    metrics: usageMetrics(registry),
    logger: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
    clock: () => world.now - world.setBackMs,
    monotonic: () => world.now,
  });
  const stop = new AbortController();
  const running = usage.run(stop.signal);
  return {
    usage,
    member,
    registry,
    lines,
    world,
    async stop() {
      stop.abort();
      await running;
    },
  };
}

export function textOf(pieces: Iterable<string>): string {
  return [...pieces].join('');
}

/** The value of a series in a text. */
export function valueOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1).split(' ')[0]);
}
