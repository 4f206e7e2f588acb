import { z } from 'zod';

const PATH = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const DEADLINE_MS = 10_000;

/** What certificate requests need of the host's client. */
export interface SigningApi {
  request<T = unknown>(request: {
    method?: 'GET' | 'POST';
    path: string;
    body?: unknown;
    deadlineMs: number;
    signal: AbortSignal;
  }): Promise<T>;
}

export type SigningState =
  | { readonly kind: 'open' }
  | { readonly kind: 'issued'; readonly certificate: string }
  | { readonly kind: 'refused'; readonly why: string };

const shape = z.object({
  metadata: z.object({ name: z.string() }),
  status: z
    .object({
      certificate: z.string().optional(),
      conditions: z
        .array(z.object({ type: z.string(), reason: z.string().optional(), message: z.string().optional() }))
        .nullish(),
    })
    .optional(),
});

export interface SigningSpec {
  readonly node: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly signer: string;
  readonly usages: readonly string[];
  /** Life to ask for, in seconds; signers may shorten it. Default: as long as the signer likes. */
  readonly expirationSeconds?: number;
  /** PEM. */
  readonly request: string;
}

/** Creates a CertificateSigningRequest; resolves to its name. */
export async function createSigningRequest(host: SigningApi, o: SigningSpec, signal: AbortSignal): Promise<string> {
  const created = await host.request({
    method: 'POST',
    path: PATH,
    body: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: `spillway-${o.node}-`, ...(o.labels === undefined ? {} : { labels: o.labels }) },
      spec: {
        signerName: o.signer,
        request: Buffer.from(o.request).toString('base64'),
        usages: o.usages,
        ...(o.expirationSeconds === undefined ? {} : { expirationSeconds: o.expirationSeconds }),
      },
    },
    deadlineMs: DEADLINE_MS,
    signal,
  });
  return shape.parse(created).metadata.name;
}

export async function readSigningRequest(host: SigningApi, name: string, signal: AbortSignal): Promise<SigningState> {
  const answer = await host.request({ path: `${PATH}/${encodeURIComponent(name)}`, deadlineMs: DEADLINE_MS, signal });
  const { status } = shape.parse(answer);
  for (const condition of status?.conditions ?? []) {
    if (condition.type === 'Denied' || condition.type === 'Failed') {
      const words = condition.message ?? condition.reason ?? 'without a reason';
      return { kind: 'refused', why: `${condition.type.toLowerCase()}: ${words}` };
    }
  }
  const certificate = status?.certificate ?? '';
  return certificate === ''
    ? { kind: 'open' }
    : { kind: 'issued', certificate: Buffer.from(certificate, 'base64').toString('utf8') };
}
