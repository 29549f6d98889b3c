/** Returns a control request. The CLI answers without a model call, with a line of the same id. */
export function controlLine(id: string, request: { readonly subtype: string; readonly [field: string]: unknown }) {
  return `${JSON.stringify({ type: 'control_request', request_id: id, request })}\n`;
}
