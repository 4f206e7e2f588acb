import type { Pod } from '../../kube/core-v1.ts';

/** A cluster as a place for the pods of one object. */
export interface SimulatedPlace {
  /** Name of a member, or `local`. */
  cluster: string;
  /** How many of the pods would go there now. */
  pods: number;
  says: string;
  /** Of members, by virtual node: the pod as it would be made there, or why it would not. */
  becomes: { node: string; pod: Pod | null; refused: string | null }[];
}

export interface Simulation {
  /** `Deployment/web` */
  object: string;
  namespace: string;
  replicas: number;
  /** What says where they go; null: nothing. */
  rules: string | null;
  /** Pods that would wait. */
  waiting: number;
  places: SimulatedPlace[];
  /** What could not be taken into account. */
  notes: string[];
}
