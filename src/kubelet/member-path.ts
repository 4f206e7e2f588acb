import { PODS, resourcePath } from '../kube/resource.ts';
import type { StreamRoute } from './routes.ts';

/** The pod's copy, in the member's terms. */
export interface MemberPod {
  readonly namespace: string;
  readonly name: string;
}

export type MemberPath = { readonly path: string } | { readonly refused: string };

/**
 * The member's own subresource for a kubelet stream path, with the kubelet's parameters in the API server's words.
 * Refuses what the kubelet refuses, in its words.
 */
export function memberStreamPath(route: StreamRoute, pod: MemberPod): MemberPath {
  if (route.kind === 'portForward') {
    const ports = route.query.rawValues('port').flatMap((raw) => raw.replaceAll(/%2c/gi, ',').split(','));
    const wrong = ports.find((port) => !isPort(port));
    if (wrong !== undefined) {
      return { refused: `unable to parse ${JSON.stringify(wrong)} as a port` };
    }
    const query = ports.map((port) => `ports=${Number(port)}`).join('&');
    const path = resourcePath(PODS, pod.namespace, pod.name, 'portforward');
    return { path: query === '' ? path : `${path}?${query}` };
  }
  const { query } = route;
  const tty = query.first('tty') === '1';
  const streams = {
    stdin: query.first('input') === '1',
    stdout: query.first('output') === '1',
    // A terminal has one output; the kubelet drops the other rather than refuse.
    stderr: query.first('error') === '1' && !tty,
  };
  const wanted = Object.entries(streams).filter(([, on]) => on);
  if (wanted.length === 0) {
    return { refused: 'you must specify at least 1 of stdin, stdout, stderr' };
  }
  const parts = [`container=${route.container}`, ...wanted.map(([name]) => `${name}=true`)];
  if (tty) {
    parts.push('tty=true');
  }
  if (route.kind === 'exec') {
    parts.push(...query.rawValues('command').map((raw) => `command=${raw}`));
  }
  return { path: `${resourcePath(PODS, pod.namespace, pod.name, route.kind)}?${parts.join('&')}` };
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
