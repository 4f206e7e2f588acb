import { podDefaults } from '../../src/admission/pod-defaults.ts';
import { isJsonObject, type JsonObject } from '../../src/kube/json-equal.ts';
import { applyPatchOperation } from '../../src/overrides/json-patch.ts';

/** A namespace of the host that has not opted in: its pods stay there, and the scheduler asks nobody about them. */
export const OPTED_OUT = 'office';

/**
 * What the host stores of a pod of that namespace: as the webhook has it, and no patch that it gives is left out. The policies of
 * manifests/admission, which do the same, are the API server's own.
 */
export function admitting(
  isVirtualNode: (name: string) => boolean,
): (path: string, body: JsonObject | undefined) => JsonObject | undefined {
  const settings = {
    schedulerName: undefined,
    isVirtualNode,
    outages: { toleration: 'Forever', admissionSeconds: 300 },
    splitConstraints: false,
  } as const;
  return (path, body) => {
    if (path !== `/api/v1/namespaces/${OPTED_OUT}/pods` || body === undefined) return body;
    let admitted: unknown = body;
    for (const { op, ...step } of podDefaults(body, false, settings)) {
      admitted = applyPatchOperation(admitted, { operator: op, ...step });
    }
    return isJsonObject(admitted) ? admitted : body;
  };
}
