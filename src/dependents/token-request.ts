import type { Pod } from '../kube/core-v1.ts';
import type { KubeClient } from '../kube/client.ts';
import { CONFIG_MAPS, resourcePath, SERVICE_ACCOUNTS } from '../kube/resource.ts';
import type { KubeObject } from '../kube/object.ts';
import { get } from '../kube/verbs.ts';
import { CA_CONFIG_MAP, type TokenSource } from '../pods/translate-tokens.ts';

/** What the volume of the host's admission asks for. An API server answers that one with a token that lasts a year. */
const EXTENDED_SECONDS = 3607;

export interface IssuedToken {
  token: string;
  /** How long it lasts, in ms. */
  lifeMs: number;
}

/**
 * A token of a host pod's service account, bound to the pod: it ends with it. The account of a virtual node may ask for
 * its own pods and for audiences that they name (Node authorizer, NodeRestriction). Never for longer than was asked for.
 */
export async function requestToken(
  host: KubeClient,
  pod: Pod,
  { audience, expirationSeconds }: TokenSource,
  signal: AbortSignal,
): Promise<IssuedToken> {
  const { namespace, name, uid } = pod.metadata;
  const path = resourcePath(SERVICE_ACCOUNTS, namespace, pod.spec.serviceAccountName ?? 'default', 'token');
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {
      ...(audience === '' ? {} : { audiences: [audience] }),
      expirationSeconds: expirationSeconds === EXTENDED_SECONDS ? EXTENDED_SECONDS - 7 : expirationSeconds,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
    },
  };
  const answer = await host.request<TokenAnswer>({ method: 'POST', path, body, signal });
  const { token } = answer.status ?? {};
  const seconds = answer.spec?.expirationSeconds;
  if (typeof token !== 'string' || token === '' || typeof seconds !== 'number') {
    throw new Error('the host answered without a token');
  }
  return { token, lifeMs: seconds * 1000 };
}

interface TokenAnswer {
  spec?: { expirationSeconds?: unknown };
  status?: { token?: unknown };
}

/** The CA that pods of a namespace check the host's API server with (PEM). */
export async function readHostCa(host: KubeClient, namespace: string, signal: AbortSignal): Promise<string> {
  const configMap = await get<KubeObject & { data?: Record<string, string> }>(
    host,
    CONFIG_MAPS,
    { namespace, name: CA_CONFIG_MAP },
    { signal },
  );
  const ca = configMap.data?.['ca.crt'];
  if (ca === undefined) throw new Error(`ConfigMap "${CA_CONFIG_MAP}" has no ca.crt`);
  return ca;
}
