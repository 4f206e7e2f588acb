import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../hack/addresses.ts';
import { startCluster, type Cluster } from '../../hack/cluster.ts';
import { Workspace } from '../../hack/workspace.ts';
import { API_CASES } from '../fixtures/api-cases/all-cases.ts';
import { Place } from '../fixtures/api-cases/api-case.ts';
import { realServer } from '../fixtures/api-cases/real-server.ts';

/** Those that the cases are about; all others would write what the cases write themselves. */
const CONTROLLERS = 'garbage-collector-controller,namespace-controller,serviceaccount-controller';

let workspace: Workspace;
let api: ReturnType<typeof realServer>;
let count = 0;

beforeAll(async () => {
  workspace = Workspace.create();
  const controllerManagerFlags = { controllers: CONTROLLERS };
  // Known here, so that a case can have it forget.
  const etcd = `http://127.0.0.1:${String(await freePort())}`;
  const cluster: Cluster = await startCluster(workspace, {
    name: 'cases',
    controllerManagerFlags,
    etcdFlags: { 'listen-client-urls': etcd, 'advertise-client-urls': etcd },
    apiServerFlags: { 'etcd-servers': etcd },
  });
  expect(await cluster.kubectl(['apply', '-f', 'manifests/crds'])).toMatchObject({ code: 0 });
  expect(await cluster.kubectl(['wait', 'crd', '--all', '--for=condition=Established', '--timeout=60s'])).toMatchObject(
    {
      code: 0,
    },
  );
  api = realServer(cluster, etcd);
});

afterAll(async () => {
  await api.close();
  await workspace.close();
});

describe.each(API_CASES)('a real API server, %s', (_about, cases) => {
  test.each(cases)('$name', async ({ run }) => {
    const name = `case-${++count}`;
    await api.request('POST', '/api/v1/namespaces', { metadata: { name } });
    const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
    await api.eventually('pods may be made', async () => (await api.request('GET', account)).code === 200);
    await run(new Place(api, name));
  });
});
