import './outside.ts';

const { runProgram } = await import('./program.ts');
await runProgram(process.argv.slice(2));
