import type { EndpointSlice } from '../kube/discovery-v1.ts';
import type { ExportRecord } from './export-record.ts';
import { toldEndpoint } from './imported-slices.ts';

/* Bytes, beside the text of what is told: about what it takes in memory, and in the storage of each cluster. */
const SLICE = 1_024;
const ADDRESS = 100;
const SLICE_PORT = 100;
const PORT = 256;
/** A record stands in an annotation, in the ServiceImport and in the Service behind it. */
const RECORD_TIMES = 3;
/** What others do not know yet may fill no more of the room than this: else what is at the edge would come and go in all clusters. */
const PART_FOR_NEW = 0.9;

const sizes = new WeakMap<EndpointSlice, number>();

/** How much of other clusters an export takes, in bytes, whether its endpoints are ready or not. About 250 an endpoint, and 1 KiB a slice. */
export function exportSize(record: ExportRecord, slices: readonly EndpointSlice[]): number {
  let bytes = RECORD_TIMES * textBytes(record) + PORT * record.ports.length;
  for (const slice of slices) bytes += sizeOfSlice(slice);
  return bytes;
}

function sizeOfSlice(slice: EndpointSlice): number {
  const known = sizes.get(slice);
  if (known !== undefined) return known;
  const { endpoints = [], ports = [] } = slice;
  let bytes = SLICE;
  for (const endpoint of endpoints) {
    bytes += ADDRESS * endpoint.addresses.length + textBytes(toldEndpoint(endpoint, false));
  }
  for (const port of ports) bytes += SLICE_PORT + textBytes(port);
  sizes.set(slice, bytes);
  return bytes;
}

function textBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/**
 * The room that one cluster has in the others for what it exports. Who has room keeps it, so that none is pushed out by what others
 * export or by how they grow.
 */
export class ExportRoom {
  readonly #most: number;
  readonly #taken = new Map<string, number>();
  #used = 0;

  /** In bytes, see {@link exportSize}. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Takes room for a key in place of what it had. False: there is not enough, and it has none any more. `isTold`: others know of it. */
  take(key: string, bytes: number, isTold: boolean): boolean {
    const isKnown = isTold || this.#taken.has(key);
    this.give(key);
    if (this.#used + bytes > (isKnown ? this.#most : PART_FOR_NEW * this.#most)) return false;
    this.#taken.set(key, bytes);
    this.#used += bytes;
    return true;
  }

  give(key: string): void {
    this.#used -= this.#taken.get(key) ?? 0;
    this.#taken.delete(key);
  }
}
