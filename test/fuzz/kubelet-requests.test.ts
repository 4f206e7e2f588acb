import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { PODS, resourcePath } from '../../src/kube/resource.ts';
import { nodeAttributes } from '../../src/kubelet/authorization-attributes.ts';
import { logOptions } from '../../src/kubelet/log-options.ts';
import { memberStreamPath } from '../../src/kubelet/member-path.ts';
import { parseRequest } from '../../src/kubelet/routes.ts';
import { fuzz } from './fuzz.ts';
import { text } from './inputs.ts';
import { method, url } from './kubelet-urls.ts';

const POD = { namespace: 'member-ns', name: 'web-0' };

describe('requests to a kubelet port', () => {
  fuzz(
    'give a route or the reason why not, and stay with their pod',
    fc.tuple(fc.oneof(method, text), url),
    { share: 6_000 },
    ([method, url]) => {
      const { root, route } = parseRequest(method, url);
      const attributes = nodeAttributes(method, root);
      if (attributes !== undefined) expect(attributes.subresources.length).toBeGreaterThan(0);
      switch (route.kind) {
        case 'exec':
        case 'attach':
        case 'portForward': {
          const answer = memberStreamPath(route, POD);
          if ('refused' in answer) return;
          const asked = new URL(answer.path, 'https://member');
          expect(asked.pathname).toBe(resourcePath(PODS, POD.namespace, POD.name, route.kind.toLowerCase()));
          expect(asked.hash).toBe('');
          if (route.kind !== 'portForward') expect(asked.searchParams.getAll('container')).toEqual([route.container]);
          break;
        }
        case 'containerLogs': {
          const options = logOptions(route.query);
          if ('query' in options) expect(options.query).not.toHaveProperty('container');
          break;
        }
        default:
          return;
      }
      // What was read is what stands there, once decoded: no other pod can be meant.
      const path = decodeURIComponent(url.split('?')[0] ?? '').split('/');
      expect(path.slice(1, 4)).toEqual([root, route.pod.namespace, route.pod.name]);
      expect(`${route.pod.namespace}/${route.pod.name}`).toMatch(/^[a-z0-9-]+\/[a-z0-9.-]+$/);
    },
  );
});
