import { LRUCache } from 'lru-cache';
import { formatAmounts } from '../kube/amounts.ts';
import type { FitRequest } from './fit-request.ts';

/** How many more pods of a shape that somebody asked about fit. */
export interface ShapeRoom {
  /** What one of them asks for; `pods` is left out. */
  requests: Record<string, string>;
  /** Node labels they ask for: `disk=ssd`. */
  where?: string;
  /** Rounded down to two digits, as small changes of large numbers concern nobody. */
  slots: number;
}

/** What is told of a request that was asked about; worked out once, and told every few seconds. */
interface Shape {
  readonly key: string;
  readonly said: Omit<ShapeRoom, 'slots'>;
}

const MAX_SHAPES = 8;
/** Pods of one shape with other labels are other requests. */
const MAX_REQUESTS = 64;
/** More slots than this are all the same. */
const MANY = 10_000;
const MAX_WHERE = 256;

/** Remembers which pods were asked about last, and tells how much room there is for such pods. */
export class AskedShapes {
  readonly #requests = new LRUCache<string, { request: FitRequest; shape?: Shape }>({ max: MAX_REQUESTS });
  #last = '';

  note(request: FitRequest): void {
    if (request.key === this.#last) return;
    this.#last = request.key;
    // What was worked out of it stays, and a get marks it as asked about as well as a set does.
    if (this.#requests.get(request.key) === undefined) this.#requests.set(request.key, { request });
  }

  /** The shapes that were asked about last, in an order that does not change with each question. */
  rooms(slots: (request: FitRequest, upTo: number) => number): ShapeRoom[] {
    const shapes = new Map<string, ShapeRoom>();
    for (const asked of this.#requests.values()) {
      const { request } = asked;
      const { key, said } = (asked.shape ??= shapeOf(request));
      if (shapes.has(key)) continue;
      if (shapes.size === MAX_SHAPES) break;
      shapes.set(key, { ...said, slots: twoDigits(slots(request, MANY)) });
    }
    return [...shapes].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, room]) => room);
  }
}

function shapeOf(request: FitRequest): Shape {
  const { pods: _, ...requests } = formatAmounts(request.requests);
  const where = request.where.slice(0, MAX_WHERE);
  return { key: textOf({ requests, where }), said: { requests, ...(where === '' ? {} : { where }) } };
}

/** `cpu=500m,memory=1Gi disk=ssd`: a shape as one text. */
export function textOf({ requests, where = '' }: Pick<ShapeRoom, 'requests' | 'where'>): string {
  const demand = Object.entries(requests).map(([name, amount]) => `${name}=${amount}`);
  return `${demand.join()}${where === '' ? '' : ` ${where}`}`;
}

function twoDigits(number: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, number))) - 1);
  return Math.floor(number / step) * step;
}
