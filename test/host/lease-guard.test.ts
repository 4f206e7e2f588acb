import { expect, it } from 'vitest';
import { leaseGuard } from '../../src/host/lease-guard.ts';

it('lets nothing pass without the lease but reviews, and asks the guard of the host about all that passes', () => {
  let held = true;
  const asked: string[] = [];
  const guard = leaseGuard(
    ({ path }) => void asked.push(path),
    () => held,
  );
  const send = (path: string): void => guard({ method: 'POST', path, body: {} });
  const review = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  send('/api/v1/namespaces/shop/pods');
  held = false;
  expect(() => send('/api/v1/namespaces/shop/pods')).toThrow('the lease is not held any more');
  send(review);
  expect(asked).toEqual(['/api/v1/namespaces/shop/pods', review]);
});
