// Planted faults, to see that the check can fail: LOUSHO_DEMO_FAULT=<name> npm run demo -- --yes must end with exit code 1.
// They change what the check is shown, nothing else.
const faults = {
  'double-charge': ({ ledger }) => ledger.charges.push({ ...ledger.charges[0], idempotency_key: 'another' }),
  'double-shipment': ({ ledger }) =>
    ledger.shipments.push({ ...ledger.shipments[0], idempotency_key: 'another' }),
  'changed-key': ({ ledger }) => {
    ledger.attempts.push({
      ...ledger.attempts.find(({ tool }) => tool === 'ship_order'),
      process: 0,
      idempotency_key: 'another',
    });
  },
  'double-email': ({ ledger }) => ledger.emails.push(ledger.emails[0]),
  'double-refund': ({ ledger }) => ledger.refunds.push({ ...ledger.refunds[0] }),
  'asked-again': ({ ledger }) => ledger.modelAnswers.push({ ...ledger.modelAnswers[0], process: 2 }),
  'ran-again': ({ ledger }) => ledger.attempts.push({ ...ledger.attempts[0], process: 2 }),
  'too-early': ({ ledger }) =>
    ledger.attempts.push({ ...ledger.attempts[0], tool: 'other', tool_call_id: 'call_of_nobody' }),
  'lost-result': ({ checkpoint }) =>
    checkpoint.messages.splice(
      checkpoint.messages.findIndex(({ role }) => role === 'tool'),
      1,
    ),
  'swapped-results': ({ checkpoint: { messages } }) => {
    const first = messages.findIndex(
      ({ role }, index) => role === 'tool' && messages[index + 1].role === 'tool',
    );
    messages.splice(first, 2, messages[first + 1], messages[first]);
  },
  unfinished: ({ checkpoint }) =>
    Object.assign(checkpoint, { status: 'in-progress', finishReason: undefined }),
};

/** `evidence`: `{ checkpoint, ledger }`. Unchanged without the variable. */
export function withPlantedFault(evidence, name = process.env.LOUSHO_DEMO_FAULT) {
  if (name === undefined || name === '') return evidence;
  if (!Object.hasOwn(faults, name))
    throw new Error(`LOUSHO_DEMO_FAULT must be one of: ${Object.keys(faults).join(', ')}`);
  const changed = structuredClone(evidence);
  faults[name](changed);
  return changed;
}
