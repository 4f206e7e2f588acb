import { GROUP } from './marks.ts';

/** What a pod's service account becomes in a member. */
export const SERVICE_ACCOUNT_MODES = ['None', 'Member', 'Host'] as const;
export type ServiceAccountMode = (typeof SERVICE_ACCOUNT_MODES)[number];

/**
 * Host namespaces (label) and host pods (annotation): the mode that is asked for. Member pods (annotation): the mode that
 * they were made in, unless it is None.
 */
export const SERVICE_ACCOUNT_MODE = `${GROUP}/service-account-mode`;

/** What a member admits: `spec.serviceAccount` of its MemberCluster. */
export interface ServiceAccountSpec {
  mode: ServiceAccountMode;
  allowed: readonly ServiceAccountMode[];
  apiServer?: { host: string; port: number };
}

export interface ModeRequest {
  /** The annotation of the host pod. */
  pod: string | undefined;
  namespace: string;
  /** The label of its namespace. */
  namespaceLabel: string | undefined;
  member: string;
  spec: ServiceAccountSpec;
}

export type ModeAnswer = { mode: ServiceAccountMode } | { refused: { reason: string; message: string } };

/**
 * The mode of a pod: what the pod asks for, else its namespace, else what the member has for all; in each case only one
 * that the member admits. None is admitted everywhere.
 */
export function serviceAccountModeOf({ pod, namespace, namespaceLabel, member, spec }: ModeRequest): ModeAnswer {
  const asked = pod ?? namespaceLabel;
  if (asked === undefined) return admitted(spec.mode, { member, spec, who: 'The member' });
  const who =
    pod === undefined
      ? `Label ${SERVICE_ACCOUNT_MODE} of namespace "${namespace}"`
      : `Annotation ${SERVICE_ACCOUNT_MODE} of the pod`;
  const mode = SERVICE_ACCOUNT_MODES.find((one) => one === asked);
  if (mode === undefined) {
    return refused(
      'ServiceAccountModeInvalid',
      `${who} is "${asked}", which is no service account mode, so the pod is not sent to cluster "${member}". ` +
        `This does not pass by itself. Use ${SERVICE_ACCOUNT_MODES.slice(0, -1).join(', ')} or ${SERVICE_ACCOUNT_MODES.at(-1)}.`,
    );
  }
  return admitted(mode, { member, spec, who });
}

function admitted(
  mode: ServiceAccountMode,
  { member, spec, who }: Pick<ModeRequest, 'member' | 'spec'> & { who: string },
): ModeAnswer {
  if (!admitsMode(spec, mode)) {
    return refused(
      'ServiceAccountModeNotAllowed',
      `${who} asks for service account mode ${mode}, which cluster "${member}" does not admit. This does not pass by itself. ` +
        `Ask for another mode, or let an administrator add ${mode} to spec.serviceAccount.allowed of MemberCluster "${member}".`,
    );
  }
  return { mode };
}

/** Whether pods may be in this mode at all. */
export function admitsMode(spec: ServiceAccountSpec, mode: ServiceAccountMode): boolean {
  const listed = mode === 'None' || mode === spec.mode || spec.allowed.includes(mode);
  return listed && (mode !== 'Host' || spec.apiServer !== undefined);
}

/** The mode that a pod in a member was made in. */
export function madeInMode(memberPod: { metadata: { annotations?: Record<string, string> } }): ServiceAccountMode {
  const mark = memberPod.metadata.annotations?.[SERVICE_ACCOUNT_MODE];
  return SERVICE_ACCOUNT_MODES.find((mode) => mode === mark) ?? 'None';
}

function refused(reason: string, message: string): ModeAnswer {
  return { refused: { reason, message } };
}
