-- What somebody does by hand who wants the same rows gone: find them, delete and update them, and give the pages back.
-- The rules are those of the classes superseded-events, technical and diffs.

-- Growing copies: the newest of each entity stays.
DELETE FROM event
WHERE type IN ('session.updated.1', 'message.updated.1', 'message.part.updated.1')
  AND rowid NOT IN (
    SELECT row FROM (
      SELECT rowid AS row, max(seq) FROM event
      WHERE type IN ('session.updated.1', 'message.updated.1', 'message.part.updated.1')
      GROUP BY aggregate_id, type, coalesce(json_extract(data, '$.part.id'), json_extract(data, '$.info.id'))
    )
  );

-- Reasoning and finished tools of completed messages before the newest turn, one row each.
DELETE FROM part
WHERE (
    json_extract(data, '$.type') = 'reasoning'
    OR json_extract(data, '$.type') = 'tool' AND json_extract(data, '$.state.status') IN ('completed', 'error')
  )
  AND message_id IN (
    SELECT m.id FROM message m
    JOIN (
      SELECT session_id, max(printf('%020d', time_created) || id) AS begin FROM message
      WHERE json_extract(data, '$.role') = 'user' GROUP BY session_id
    ) turn ON turn.session_id = m.session_id
    WHERE printf('%020d', m.time_created) || m.id < turn.begin
      AND json_extract(m.data, '$.role') = 'assistant' AND json_extract(m.data, '$.time.completed') IS NOT NULL
  );

-- The same in the later layout, where a row holds all items of a message.
UPDATE session_message
SET data = json_set(data, '$.content', (
    SELECT json_group_array(json(value)) FROM json_each(session_message.data, '$.content')
    WHERE json_extract(value, '$.type') NOT IN ('reasoning', 'tool')
  ))
WHERE type = 'assistant' AND json_extract(data, '$.time.completed') IS NOT NULL
  AND seq < (
    SELECT max(seq) FROM session_message u WHERE u.session_id = session_message.session_id AND u.type = 'user'
  )
  AND EXISTS (
    SELECT 1 FROM json_each(session_message.data, '$.content')
    WHERE json_extract(value, '$.type') IN ('reasoning', 'tool')
  );

-- Patches in the summaries of user messages.
UPDATE message SET data = json_set(data, '$.summary.diffs', json('[]'))
WHERE json_extract(data, '$.role') = 'user' AND json_array_length(data, '$.summary.diffs') > 0;

VACUUM;
