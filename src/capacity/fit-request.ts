import type { Amounts } from './amounts.ts';

/** What a pod asks of a member's nodes and of its namespace there: compiled once for all pods of one shape. */
export interface FitRequest {
  /** The same text means the same answers. */
  readonly key: string;
  /** What the pod asks for as it is written, before the defaults of its namespace in the member. */
  readonly requests: Amounts;
}
