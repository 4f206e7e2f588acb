import { expect, test } from 'vitest';
import { startDemo } from '../../hack/demo.ts';
import { Workspace } from '../../hack/workspace.ts';

test('the demo on a machine that cannot run real kubelets: both members are simulated, and it says so', async () => {
  const said: string[] = [];
  const workspace = Workspace.create({ say: (line) => void said.push(line) });
  try {
    const summary = await startDemo(workspace, { ok: false, reason: 'real kubelets need root' });
    expect(said).toContain('member east is simulated by kwok: real kubelets need root');
    expect(summary).toMatch(/east +Ready[\s\S]*west +Ready/);
    expect(summary.match(/^hello-\S+ +1\/1 +Running/gm)).toHaveLength(4);
    expect(summary).toContain('Pods on east and west are simulated by kwok: no containers run there');
    expect(summary.match(/^ {2}kubectl .*$/gm)).toHaveLength(5);
  } finally {
    await workspace.close();
  }
});
