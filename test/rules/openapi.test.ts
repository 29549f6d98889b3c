import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { brokenHttp } from '../../src/shared/api/endpoints.js';
import { httpStatusOf } from '../../src/shared/errors.js';
import { openApiText } from '../../tools/openapi.js';
import { openApiPath } from '../support/documents/sources.js';
import { allDoorEndpoints, nativeEndpoints } from '../support/documents/tables.js';
import { documentedAnswers, type OpenApi } from '../support/doors/contract.js';

type Tree = { readonly [key: string]: unknown };

const text = readFileSync(openApiPath, 'utf8');
const document = parse(text) as OpenApi & Tree;
const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

const operations = Object.entries(document.paths).flatMap(([route, item]) =>
  Object.entries(item).map(([method, operation]) => ({ route, method, operation: operation as unknown as Tree })),
);

/** Returns every object in the document, with its path. */
function nodesOf(tree: unknown, path: readonly string[] = []): { readonly path: string; readonly node: Tree }[] {
  if (typeof tree !== 'object' || tree === null) return [];
  const children = Object.entries(tree).flatMap(([key, child]) => nodesOf(child, [...path, key]));
  return Array.isArray(tree) ? children : [{ path: path.join('/'), node: tree as Tree }, ...children];
}

function at(pointer: string): unknown {
  const keys = pointer.slice(2).split('/');
  return keys.reduce<unknown>((tree, key) => (tree as Tree | undefined)?.[key], document);
}

describe('The committed OpenAPI document', () => {
  it('matches the schemas that validate requests: otherwise run `npm run openapi`', () => {
    expect(text).toBe(openApiText());
  });

  it('describes every route of the service, and nothing else', () => {
    const described = operations.map(({ method, route }) => `${method.toUpperCase()} ${route}`);
    const withoutSlash = (route: string) => route.replace(/\/$/, '');
    const routes = [...nativeEndpoints, ...allDoorEndpoints].map(
      ({ method, route }) => `${method} ${withoutSlash(route)}`,
    );
    expect(described.toSorted()).toEqual(routes.toSorted());
  });

  it('lists each status of invalid HTTP, which any operation can return', () => {
    for (const { operation } of operations) {
      const { description } = (operation.responses as { default: { description: string } }).default;
      for (const status of Object.values(brokenHttp).filter((status) => status !== httpStatusOf.validation_error)) {
        expect(description).toContain(String(status));
      }
    }
  });

  it('describes tokens_used as an estimate everywhere', () => {
    const told = nodesOf(document).flatMap(({ node: { tokens_used } }) => (tokens_used ? [tokens_used as Tree] : []));
    expect(told).toHaveLength(3);
    for (const { description } of told) expect(description).toMatch(/estimate/i);
  });

  it('lists every error code of a route under its status', () => {
    const named = documentedAnswers().flatMap((answer) => {
      const [, , status, code] = answer.split(' ');
      return code === undefined ? [] : [[code, Number(status)] as const];
    });
    const { not_found, method_not_allowed, ...rest } = httpStatusOf;
    expect(Object.fromEntries(named)).toEqual({ not_found, ...rest });
    expect(method_not_allowed).toBe(405); // for methods without an operation
  });
});

describe('As OpenAPI 3.1, it', () => {
  it('has its version, its title, and only fields of 3.1', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'prompt-relay', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    expect(Object.keys(document).sort()).toEqual(['components', 'info', 'openapi', 'paths', 'servers', 'tags']);
    expect(operations.filter(({ method }) => !methods.includes(method))).toEqual([]);
  });

  it('has no broken reference', () => {
    const references = nodesOf(document).flatMap(({ node: { $ref } }) => (typeof $ref === 'string' ? [$ref] : []));
    expect(references.length).toBeGreaterThan(20);
    expect(references.filter((reference) => at(reference) === undefined)).toEqual([]);
  });

  it('has operation ids that suit generated clients', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(ids).toEqual(
      expect.arrayContaining(['ask', 'chat', 'listConversations', 'deleteConversation', 'getHealth']),
    );
    expect(ids.filter((id) => /V1|Id$|^(post|put)[A-Z]/.test(String(id)))).toEqual([]);
  });

  it('has for every operation a unique id, a summary, and for every response a description and, unless it is empty, a schema', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(ids.every((id) => typeof id === 'string' && /^[a-z][A-Za-z\d]+$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { route, operation } of operations) {
      expect(operation).toMatchObject({ summary: expect.stringMatching(/\S/), responses: expect.any(Object) });
      for (const [status, response] of Object.entries(operation.responses as Tree)) {
        expect(status).toMatch(/^([1-5]\d\d|default)$/);
        expect(response).toMatchObject({ description: expect.stringMatching(/\S/) });
        const { content: contents } = response as Tree;
        // These responses have no body.
        expect(contents === undefined).toBe(/^(204|302)$/.test(status) || `${route} ${status}` === '/mcp 202');
        for (const content of Object.values(contents ?? {})) {
          expect(content).toMatchObject({ schema: expect.any(Object) });
        }
      }
    }
  });

  it('declares each path parameter where it is used, and each security scheme', () => {
    for (const { route, operation } of operations) {
      const declared = ((operation.parameters ?? []) as Tree[]).filter((parameter) => parameter.in === 'path');
      expect(declared.map(({ name }) => name)).toEqual([...route.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      expect(declared.every(({ required }) => required === true)).toBe(true);
      const schemes = (operation.security as Tree[]).flatMap((requirement) => Object.keys(requirement));
      expect(schemes.filter((scheme) => document.components.securitySchemes?.[scheme] === undefined)).toEqual([]);
    }
  });

  it('has request bodies only for POST and PATCH, and no field of OpenAPI 3.0', () => {
    const withBody = operations.filter(({ operation }) => operation.requestBody !== undefined);
    expect(withBody.map(({ method, route }) => `${method} ${route}`)).toEqual([
      'post /ask',
      'post /chat',
      'post /store/backup',
      'post /store/verify',
      'post /store/purge',
      'post /chat/import',
      'patch /chat/{conversation_id}',
      'post /chat/{conversation_id}/fork',
      'post /keys',
      'patch /keys/{name}',
      'post /keys/{name}/rotate',
      'post /lent-keys',
      'post /courses/{course}/members',
      'patch /courses/{course}/members/{member}',
      'post /chat/{conversation_id}/steer',
      'post /jobs/{job_id}/steer',
      'post /reservations',
      'post /v1/files',
      'post /mcp',
      'post /v1/messages',
      'post /v1/messages/count_tokens',
      'post /v1/messages/batches',
      'post /api/show',
      'post /api/chat',
      'post /api/generate',
      'post /v1/chat/completions',
      'post /v1/completions',
      'post /v1/responses',
      'post /v1/batches',
    ]);
    const old = nodesOf(document).filter(
      ({ node }) => 'nullable' in node || ('example' in node && !('schema' in node)),
    );
    expect(old).toEqual([]);
  });
});
