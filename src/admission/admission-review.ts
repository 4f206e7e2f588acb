import { z } from 'zod';
import type { PatchStep } from './patch-step.ts';

/** What is looked at of an AdmissionReview (admission.k8s.io/v1); the object is whatever was created. */
const reviewSchema = z.object({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.object({
    uid: z.string().min(1).max(256),
    operation: z.string(),
    namespace: z.string().optional(),
    object: z.unknown(),
  }),
});

export type AdmissionRequest = z.output<typeof reviewSchema>['request'];

/** The request of a review, or what is wrong with it. */
export function parseReview(body: unknown): { request: AdmissionRequest } | { problem: string } {
  const parsed = reviewSchema.safeParse(body);
  return parsed.success ? { request: parsed.data.request } : { problem: z.prettifyError(parsed.error) };
}

/** The review that lets the object pass, changed by the patch. */
export function allow(uid: string, patch: readonly PatchStep[]): object {
  const changes =
    patch.length === 0 ? {} : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') };
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true, ...changes } };
}
