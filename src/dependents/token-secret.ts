import {
  GROUP,
  HOST_LABEL,
  HOST_NAME_ANNOTATION,
  HOST_NAMESPACE_ANNOTATION,
  HOST_UID_ANNOTATION,
  MEMBER_LABEL,
  NODE_LABEL,
  UID_LABEL,
} from '../api/marks.ts';
import type { Pod } from '../kube/core-v1.ts';
import { keyFor, type KubeObject } from '../kube/object.ts';
import { TOKEN_SECRET_TYPE, tokenSecretName } from '../pods/translate-tokens.ts';
import type { CopyPlace, CopyRecord } from './copy.ts';

/** Annotation of a Secret with tokens: when they are to be replaced (RFC 3339). */
export const REFRESH_ANNOTATION = `${GROUP}/refresh-after`;

export interface TokenSecretContent extends CopyPlace {
  /** Milliseconds since the epoch. */
  refreshAt: number;
  /** By key, in clear. */
  values: ReadonlyMap<string, string>;
}

/** The Secret in the member with the tokens of a host pod; `former` is the one that it replaces. */
export function tokenSecretFor(pod: Pod, content: TokenSecretContent, former: CopyRecord | undefined): KubeObject {
  const { namespace = '', name, uid = '' } = pod.metadata;
  const { uid: secretUid, resourceVersion } = former?.metadata ?? {};
  const data = Array.from(content.values, ([key, value]) => [key, Buffer.from(value).toString('base64')]);
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: tokenSecretName(uid),
      namespace: content.memberNamespace,
      ...(secretUid === undefined ? {} : { uid: secretUid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      labels: {
        [HOST_LABEL]: content.hostId,
        [MEMBER_LABEL]: content.member,
        [NODE_LABEL]: pod.spec.nodeName ?? '',
        [UID_LABEL]: uid,
      },
      annotations: {
        [HOST_NAMESPACE_ANNOTATION]: namespace,
        [HOST_NAME_ANNOTATION]: name,
        [HOST_UID_ANNOTATION]: uid,
        [REFRESH_ANNOTATION]: new Date(content.refreshAt).toISOString(),
      },
    },
    type: TOKEN_SECRET_TYPE,
    data: Object.fromEntries(data) as Record<string, string>,
  };
  return secret;
}

/** Whose tokens are in it; undefined for anything but what {@link tokenSecretFor} made. */
export function ownerOfTokens({
  type,
  metadata,
}: CopyRecord): { podKey: string; uid: string; node: string } | undefined {
  const { annotations, labels } = metadata;
  const [namespace, name] = [annotations?.[HOST_NAMESPACE_ANNOTATION], annotations?.[HOST_NAME_ANNOTATION]];
  const [uid, node] = [labels?.[UID_LABEL], labels?.[NODE_LABEL]];
  if (namespace === undefined || name === undefined || uid === undefined || node === undefined) return undefined;
  if (type !== TOKEN_SECRET_TYPE || metadata.name !== tokenSecretName(uid)) return undefined;
  return { podKey: keyFor(namespace, name), uid, node };
}

/** When its tokens are to be replaced, in ms since the epoch; 0: now. */
export function refreshTimeOf(secret: CopyRecord): number {
  const time = Date.parse(secret.metadata.annotations?.[REFRESH_ANNOTATION] ?? '');
  return Number.isNaN(time) ? 0 : time;
}
