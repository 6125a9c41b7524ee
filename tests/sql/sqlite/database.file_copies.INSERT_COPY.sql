INSERT INTO copies (copy, made_at, size, modified, kind, path, sealed)
VALUES (:copy, :made_at, :size, :modified, :kind, :path, :sealed)
