-- Versions are told apart by the transaction that wrote them (xmin), which freezing leaves as it is.
SELECT md5($1::text) || ' ' || md5(coalesce(string_agg(version, ',' ORDER BY version), '')),
       obj_description(to_regprocedure('headwater_raise_revisions(text[])'), 'pg_proc')
FROM (
    SELECT format('%s %s %s %s', tgrelid, oid, xmin, tgenabled) AS version FROM pg_trigger
        WHERE tgrelid IN (to_regclass('task_sessions'), to_regclass('task_session_messages'), to_regclass('task_session_turns'))
            AND NOT tgisinternal AND (starts_with(tgname, 'headwater_') OR starts_with(tgname, 'conversation_'))
    UNION ALL
    SELECT format('%s %s', oid, xmin) FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND starts_with(proname, 'headwater_')
) AS versions
