import { Counter, type Registry } from 'prom-client';

/** What the pod webhook answered. */
export interface AdmissionMetrics {
  reviews: Counter<'outcome'>;
}

export function admissionMetrics(registry: Registry): AdmissionMetrics {
  return {
    reviews: new Counter({
      name: 'spillway_admission_reviews_total',
      help: 'Pods that the webhook looked at: changed, unchanged, malformed (not a review of a pod that can be read), refused (longer than 4 MiB, of unknown length, or too many at once).',
      labelNames: ['outcome'],
      registers: [registry],
    }),
  };
}
