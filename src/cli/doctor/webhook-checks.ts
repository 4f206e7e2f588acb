import { X509Certificate } from 'node:crypto';
import type { KubeObject } from '../../kube/object.ts';
import { failed, ok, type Finding } from './finding.ts';

const PAGE = 'guides/admission.md';

/** A MutatingWebhookConfiguration, as far as it is read here. */
export interface WebhookConfiguration extends KubeObject {
  webhooks?: {
    name: string;
    failurePolicy?: string;
    clientConfig?: { caBundle?: string; service?: { namespace: string; name: string } };
  }[];
}

/** An EndpointSlice, as far as it is read here. */
export interface Endpoints extends KubeObject {
  endpoints?: { conditions?: { ready?: boolean } }[] | null;
}

interface WebhookFacts {
  configurations: readonly WebhookConfiguration[];
  /** By `namespace/name` of a Service; undefined: not known. */
  endpoints: ReadonlyMap<string, readonly Endpoints[] | undefined>;
  /** Of the API server, in ms. */
  now: number;
}

/** Whether the API server can call our webhooks: it has a CA that it can trust still, and somebody is there to be called. */
export function webhooksServed({ configurations, endpoints, now }: WebhookFacts): Finding[] {
  const check = 'webhook';
  const findings = configurations.flatMap(({ metadata, webhooks = [] }): Finding[] => {
    const causes = new Map<string, string>();
    for (const { clientConfig = {} } of webhooks) {
      const { service, caBundle } = clientConfig;
      const trust = whyNotTrusted(caBundle, now);
      if (trust !== undefined)
        causes.set(
          trust,
          'see that the manager runs with admission.webhook.enabled, and its log: it fills in caBundle by itself',
        );
      if (service === undefined) continue;
      const key = `${service.namespace}/${service.name}`;
      const slices = endpoints.get(key);
      const isServed = slices?.some((one) =>
        (one.endpoints ?? []).some(({ conditions }) => conditions?.ready !== false),
      );
      if (isServed === false)
        causes.set(
          `nobody is ready behind Service ${key}`,
          `run the manager with admission.webhook.enabled, and see kubectl get service,endpointslices -n ${service.namespace}`,
        );
    }
    const refuses = webhooks.some(({ failurePolicy }) => failurePolicy !== 'Ignore');
    const effect = refuses
      ? 'what it looks at is refused meanwhile'
      : 'pods are created meanwhile as if it were not there';
    return [...causes].map(([why, fix]) =>
      failed(check, `the API server cannot call ${metadata.name}: ${why}; ${effect}`, fix, PAGE),
    );
  });
  return findings.length > 0 || configurations.length === 0
    ? findings
    : [ok(check, `${configurations.map(({ metadata }) => metadata.name).join(' and ')} can be called`)];
}

function whyNotTrusted(caBundle: string | undefined, now: number): string | undefined {
  if (caBundle === undefined || caBundle === '') return 'it has no caBundle, so that it trusts nobody there';
  const text = Buffer.from(caBundle, 'base64').toString();
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  const ends = certificates.flatMap((one) => {
    try {
      return [Date.parse(new X509Certificate(one).validTo)];
    } catch {
      return [];
    }
  });
  if (ends.length === 0) return 'there is no certificate in its caBundle';
  const last = Math.max(...ends);
  return last < now ? `the CA in its caBundle has expired (${new Date(last).toISOString()})` : undefined;
}
