INSERT INTO copies (copy, made_at, size, modified, kind, path)
VALUES (:copy, :made_at, :size, :modified, :kind, :path)
