import { Counter, type Registry } from 'prom-client';

/** What the pod webhook answered. */
export interface AdmissionMetrics {
  reviews: Counter<'outcome'>;
}

export function admissionMetrics(registry: Registry): AdmissionMetrics {
  return {
    reviews: new Counter({
      name: 'spillway_admission_reviews_total',
      help: 'Pods that the webhook looked at: changed, unchanged, malformed (not a review of a pod that can be read).',
      labelNames: ['outcome'],
      registers: [registry],
    }),
  };
}
