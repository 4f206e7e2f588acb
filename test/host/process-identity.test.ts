import { expect, it } from 'vitest';
import { processIdentity } from '../../src/host/process-identity.ts';

it.runIf(process.platform === 'linux')('belongs to one process at a time, and to the next one after it', async () => {
  const purpose = `test-${process.pid}`;
  const first = await processIdentity(purpose);
  const beside = await processIdentity(purpose);
  const elsewhere = await processIdentity(`${purpose}-2`);
  expect(new Set([first.identity, beside.identity, elsewhere.identity]).size).toBe(3);
  first.release();
  const next = await processIdentity(purpose);
  expect(next.identity).toBe(first.identity);
  expect(next.incarnation).not.toBe(first.incarnation);
  for (const one of [beside, elsewhere, next]) one.release();
});
