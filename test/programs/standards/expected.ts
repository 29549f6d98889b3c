/**
 * Checks of foreign suites that fail here, with the reason why this is correct. A check that passes must be removed,
 * and a failing check that is not listed fails the test.
 */
type Expected = Readonly<Record<string, string>>;

const noDiagnosticTool =
  'calls a tool that the suite asks servers to have for its sake; this one offers its own tools alone';
const noPrompts = 'the server offers tools, and neither prompts nor resources';

/** Keys are the scenario and the check of `@modelcontextprotocol/conformance`. */
export const ofMcp: Readonly<Record<string, Expected>> = {
  'server-stateless': {
    'sep-2575-server-rejects-undeclared-capability': noDiagnosticTool,
    'sep-2575-missing-capability-http-400': noDiagnosticTool,
    'sep-2575-http-server-no-independent-requests-on-stream': noDiagnosticTool,
    'sep-2575-server-no-log-without-loglevel': noDiagnosticTool,
  },
  caching: {
    'sep-2549-prompts-list-caching-hints': noPrompts,
    'sep-2549-resources-list-caching-hints': noPrompts,
    'sep-2549-resources-templates-list-caching-hints': noPrompts,
  },
};

/** Keys are the rules of Redocly CLI. Only warnings are listed, no errors. */
export const ofRedocly: Expected = {
  'no-unused-components': 'an event of a stream, to which the document refers in a field of its own, `x-change`',
  'no-required-schema-properties-undefined':
    'a record whose keys are known stands in the document as `propertyNames` and `required`',
};

/** Keys are the rules of Spectral. */
export const ofSpectral: Expected = {};

/** Keys are the kind of a problem of `@arethetypeswrong/cli`, and the way of resolution or the names. */
export const problemsOfTypes: Expected = {
  'NoResolution node10': 'the way of TypeScript before version 4.7, which reads no `exports`; Node 20 is required',
  NamedExports: 'the kit exports the names of the contract as types alone, so that TypeScript refuses them as values',
};

const isByName = 'is loaded by name, so that a service loads only what it uses';
const isOfProcess = 'Jest hands the whole module to the sandbox, so that schemas are compiled once per process';
const isOfJest = 'belongs to Jest, whose environment this file extends';

/** Keys are the file and the name, as in the report of knip. */
export const unusedNames: Expected = {
  'package.json @fontsource/noto-sans-math': 'tools/browser-files.ts copies the font into the console',
  'src/features/acp/agents.ts createAgent': isByName,
  'src/features/anthropic/door.ts door': isByName,
  'src/features/batches/describe.ts described': isByName,
  'src/features/codex/adapter.ts createCodex': isByName,
  'src/features/demo/adapter.ts createDemo': isByName,
  'src/features/file/adapter-module.ts createFromFile': isByName,
  'src/features/files/describe.ts described': isByName,
  'src/features/mcp/door.ts door': isByName,
  'src/features/ollama/door.ts door': isByName,
  'src/features/openai/door.ts door': isByName,
  'test/support/basics/environment.ts @jest/environment': isOfJest,
  'test/support/basics/environment.ts jest-environment-node': isOfJest,
  'test/support/documents/openapi.ts openApiJson': isOfProcess,
  'test/support/documents/openapi.ts openApiErrors': isOfProcess,
};
