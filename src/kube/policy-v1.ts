import type { Condition, IntOrString, LabelSelector } from './core-v1.ts';
import type { KubeObject } from './object.ts';

export interface PodDisruptionBudget extends KubeObject {
  spec: {
    selector?: LabelSelector;
    minAvailable?: IntOrString;
    maxUnavailable?: IntOrString;
    unhealthyPodEvictionPolicy?: string;
  };
  status?: {
    observedGeneration?: number;
    disruptionsAllowed?: number;
    currentHealthy?: number;
    desiredHealthy?: number;
    expectedPods?: number;
    disruptedPods?: Record<string, string>;
    conditions?: Condition[];
  };
}
