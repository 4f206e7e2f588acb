import { expect, test } from 'vitest';
import { startDemo } from '../../hack/demo.ts';
import { Workspace } from '../../hack/workspace.ts';

test('the demo on a machine that cannot run real kubelets: kwok plays all nodes, and it says so', async () => {
  const said: string[] = [];
  const workspace = Workspace.create({ say: (line) => void said.push(line) });
  try {
    const summary = await startDemo(workspace, {
      can: { ok: false, reason: 'real kubelets need root' },
      metrics: false,
    });
    expect(said).toContain('member east is simulated by kwok: real kubelets need root');
    expect(summary).toMatch(/east +Ready[\s\S]*west +Ready/);
    expect(summary.match(/^hello-\S+ +1\/1 +Running/gm)).toHaveLength(8);
    expect(summary).toContain('Nodes of local and east and west are played by kwok: no containers run there');
    expect(summary).not.toContain('kubectl top');
  } finally {
    await workspace.close();
  }
});
