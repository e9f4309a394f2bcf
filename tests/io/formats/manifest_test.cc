#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/base/error.h>
#include <echopipe/base/random.h>
#include <echopipe/io/formats/csv.h>
#include <echopipe/io/formats/manifest.h>
#include <echopipe/tests/support/error_of.h>
#include <echopipe/tests/support/fake_storage.h>

namespace echopipe::internal {
namespace {

using ::echopipe::testing::ErrorOf;
using ::echopipe::testing::FakeStorage;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// "3: a|b" for the row that begins in line 3.
std::vector<std::string> Rows(std::string_view text) {
  CsvReader reader(text, "a.csv");
  std::vector<std::string> rows;
  std::vector<std::string> row;
  while (reader.Next(&row)) {
    std::string joined = std::to_string(reader.line()) + ": ";
    for (const std::string& field : row) joined += (&field == &row[0] ? "" : "|") + field;
    rows.push_back(joined);
  }
  return rows;
}

TEST(CsvTest, ReadsWhatRfc4180Allows) {
  EXPECT_THAT(Rows("a,b\r\nc,d\r\n"), ElementsAre("1: a|b", "2: c|d"));
  EXPECT_THAT(Rows("a,b\nc,d"), ElementsAre("1: a|b", "2: c|d"));
  EXPECT_THAT(Rows("\"a,\"\"b\",\"\"\r\n\"\"\"\",x"), ElementsAre("1: a,\"b|", "2: \"|x"));
  EXPECT_THAT(Rows("\"a\r\nb\",c\nd,e\n"), ElementsAre("1: a\r\nb|c", "3: d|e"));
  EXPECT_THAT(Rows(",\n,,"), ElementsAre("1: |", "2: ||"));
  EXPECT_THAT(Rows("\xef\xbb\xbfg\xc3\xb6,\xff\n"), ElementsAre("1: g\xc3\xb6|\xff"));
  EXPECT_THAT(Rows("\n\r\na\n\n\nb\n\n"), ElementsAre("3: a", "6: b"));
  EXPECT_THAT(Rows(" a , b "), ElementsAre("1:  a | b "));
  EXPECT_THAT(Rows("\"\""), ElementsAre("1: "));
  EXPECT_THAT(Rows(""), IsEmpty());
}

TEST(CsvTest, NamesTheLineOfWhatIsNot) {
  struct Case {
    std::string text;
    const char* where;
    const char* what;
  };
  for (const Case& c : std::vector<Case>{
           {"a\nb\"c\n", "a.csv: line 2", "quote inside"},
           {"a\n\"b\"c\n", "a.csv: line 2", "behind a quoted"},
           {"\"a\nb\"\n\n\"c\n\n", "a.csv: line 4", "not closed"},
           {"a\rb", "a.csv: line 1", "CR without"},
           {"a,\"", "a.csv: line 1", "not closed"},
           {"a\n" + std::string(1100, ','), "a.csv: line 2", "1024 fields"},
           {"a\n\n" + std::string((1 << 20) + 1, 'x'), "a.csv: line 3", "over 1 MiB"},
       }) {
    const Error error = ErrorOf([&] { Rows(c.text); });
    EXPECT_EQ(error.details().where, c.where) << c.text.substr(0, 100);
    EXPECT_THAT(error.what(), HasSubstr(c.what));
  }
}

// A field quoted as it must be comes back as it was.
TEST(CsvTest, AnyRowsComeBackAsTheyWereWritten) {
  RandomStream random({.low = 1, .high = 9});
  constexpr std::string_view kCharacters = "ab,\"\r\n";
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::vector<std::string>> rows(1 + random.Below(4));
    std::string text;
    for (std::vector<std::string>& row : rows) {
      row.resize(2 + random.Below(3));
      for (std::string& field : row) {
        for (uint32_t size = random.Below(5); size > 0; --size) {
          field += kCharacters[random.Below(static_cast<uint32_t>(kCharacters.size()))];
        }
        std::string quoted = "\"";
        for (const char c : field) quoted += c == '"' ? "\"\"" : std::string(1, c);
        const bool plain = field.find_first_of(",\"\r\n") == std::string::npos;
        text += (&field == &row[0] ? "" : ",") +
                (plain && random.Below(2) == 0 ? field : quoted + "\"");
      }
      text += random.Below(2) == 0 ? "\n" : "\r\n";
    }
    CsvReader reader(text, "a.csv");
    std::vector<std::string> row;
    for (const std::vector<std::string>& expected : rows) {
      ASSERT_TRUE(reader.Next(&row));
      ASSERT_EQ(row, expected) << text;
    }
    ASSERT_FALSE(reader.Next(&row));
  }
}

class ManifestTest : public ::testing::Test {
 protected:
  ManifestListing Read(const std::vector<std::string>& uris, const ManifestColumns& columns = {}) {
    return ReadManifests(uris, columns, storage_);
  }
  Error ErrorIn(const std::string& uri, const std::string& text,
                const ManifestColumns& columns = {}) {
    storage_.Put(uri, text);
    return ErrorOf([&] { Read({uri}, columns); });
  }

  FakeStorage storage_;
};

// "key path label=3 name=value"
std::vector<std::string> Describe(const ManifestListing& listing) {
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < listing.size(); ++i) {
    std::string text = listing.Key(i) + " " + listing.Path(i);
    if (listing.Label(i)) text += " label=" + std::to_string(*listing.Label(i));
    for (const auto& [name, value] : listing.Fields(i)) text.append(" " + name + "=" + value);
    texts.push_back(text);
  }
  return texts;
}

TEST_F(ManifestTest, APathThatBeginsInItsOwnFolderIsThePathBehindThat) {
  storage_.Put("d/a.csv", "path\n./1.jpg\n././2.jpg\n.//3.jpg\n./.hidden\n.4.jpg\n");
  EXPECT_THAT(Describe(Read({"d/a.csv"})),
              ElementsAre("1.jpg d/1.jpg", "2.jpg d/2.jpg", "3.jpg d/3.jpg", ".hidden d/.hidden",
                          ".4.jpg d/.4.jpg"));
  storage_.Put("d/a.csv", "path\n" + std::string(size_t{1} << 20, '/').replace(0, 1, ".") + "\n");
  EXPECT_EQ(ErrorOf([&] { Read({"d/a.csv"}); }).code(), ErrorCode::kCorrupt);
}

TEST_F(ManifestTest, AColumnWithoutANameIsNoLabelWhereNoneIsWanted) {
  for (const auto& [uri, text] :
       {std::pair{"a.csv", "path,\n1.jpg,7\n"}, {"a.jsonl", "{\"path\": \"1.jpg\", \"\": 7}\n"}}) {
    const Error error = ErrorIn(uri, text, {.label = ""});
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("without a name"));
  }
}

TEST_F(ManifestTest, CsvAndJsonLinesNameTheSameRecords) {
  storage_.Put("data/a.csv",
               "text,path,label,box\r\n"
               "\"a \"\"cat\"\"\",cat/1.jpg,3,\"[1,2]\"\r\n"
               ",./dog 2.jpg,-1,\r\n"
               "x,/abs/3.jpg,,1.5\r\n");
  storage_.Put(
      "data/a.jsonl",
      "{\"path\": \"cat/1.jpg\", \"label\": 3, \"text\": \"a \\\"cat\\\"\", \"box\": [1, 2]}\n"
      "\n"
      "{\"label\": -1, \"path\": \"./dog 2.jpg\", \"text\": null, \"box\": \"\"}\r\n"
      "{\"path\": \"/abs/3.jpg\", \"label\": null, \"text\": \"x\", \"box\": 1.5}");
  const ManifestListing csv = Read({"data/a.csv"});
  EXPECT_THAT(Describe(csv),
              ElementsAre("cat/1.jpg data/cat/1.jpg label=3 box=[1,2] text=a \"cat\"",
                          "dog 2.jpg data/dog 2.jpg label=-1 box= text=",
                          "/abs/3.jpg /abs/3.jpg box=1.5 text=x"));
  const ManifestListing json = Read({"data/a.jsonl"});
  EXPECT_EQ(Describe(json), Describe(csv));
  EXPECT_EQ(json.Fingerprint(), csv.Fingerprint());
  EXPECT_EQ(csv.Root(2), "data/a.csv");
}

TEST_F(ManifestTest, SeveralManifestsAreOneListing) {
  storage_.Put("a.csv", "path,label\n1.jpg,1\n2.jpg,2\n");
  storage_.Put("x/none.csv", "path,label\n");
  storage_.Put("x/b.ndjson", "{\"path\": \"3.jpg\", \"z\": true}\n");
  const ManifestListing listing = Read({"a.csv", "x/none.csv", "x/b.ndjson"});
  EXPECT_THAT(Describe(listing),
              ElementsAre("1.jpg 1.jpg label=1", "2.jpg 2.jpg label=2", "3.jpg x/3.jpg z=true"));
  EXPECT_EQ(listing.Root(1), "a.csv");
  EXPECT_EQ(listing.Root(2), "x/b.ndjson");
}

TEST_F(ManifestTest, ColumnsMayHaveOtherNames) {
  storage_.Put("a.csv", "file,class,label\n1.jpg,7,cat\n");
  storage_.Put("a.jsonl", "{\"file\": \"1.jpg\", \"class\": 7, \"label\": \"cat\"}");
  for (const char* uri : {"a.csv", "a.jsonl"}) {
    EXPECT_THAT(Describe(Read({uri}, {.path = "file", .label = "class"})),
                ElementsAre("1.jpg 1.jpg label=7 label=cat"));
    EXPECT_THAT(Describe(Read({uri}, {.path = "file", .label = ""})),
                ElementsAre("1.jpg 1.jpg class=7 label=cat"));
  }
}

TEST_F(ManifestTest, FingerprintsTellKeysLabelsAndFieldsApart) {
  const auto fingerprint = [&](const std::string& text) {
    storage_.Put("a.csv", text);
    return Read({"a.csv"}).Fingerprint();
  };
  const uint64_t one = fingerprint("path,label,x\n1.jpg,1,v\n");
  EXPECT_EQ(fingerprint("x,path,label\r\nv,./1.jpg,1\r\n"), one);
  for (const char* other :
       {"path,label,x\n2.jpg,1,v\n", "path,label,x\n1.jpg,2,v\n", "path,label,x\n1.jpg,,v\n",
        "path,label,x\n1.jpg,1,w\n", "path,label,y\n1.jpg,1,v\n", "path,label\n1.jpg,1\n",
        "path,label,x\n1.jpg,1,v\n1.jpg,1,v\n"}) {
    EXPECT_NE(fingerprint(other), one) << other;
  }
}

TEST_F(ManifestTest, BadLinesAreNamedByTheirNumber) {
  struct Case {
    std::string uri;
    std::string text;
    int line;
    const char* what;
  };
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  for (const Case& c : std::vector<Case>{
           {"a.csv", "", 1, "no header"},
           {"a.csv", "file,label\nx,1\n", 1, "no column path"},
           {"a.csv", "path,path\nx,1\n", 1, "comes twice"},
           {"a.csv", "path,label\nx,1\n\"y\n\",2\nz\n", 5, "another number of fields"},
           {"a.csv", "path,label\nx,1\n\ny,cat\n", 4, "not an integer (got cat)"},
           {"a.csv", "path,label\nx,99999999999999999999\n", 2, "not an integer"},
           {"a.csv", "path,label\nx,3 cats\n", 2, "not an integer (got 3 cats)"},
           {"a.csv", "path,label\n,1\n", 2, "empty path"},
           {"a.csv", "path,label\n./,1\n", 2, "empty path"},
           {"a.csv", std::string("path\na\0b\n", 9), 2, "NUL"},
           {"a.csv", "path,image\na,b\n", 2, "called image"},
           {"a.csv", "path,\na,b\n", 2, "without a name"},
           {"a.csv", "path\ns3://bucket/a.jpg\n", 2, "no such scheme"},
           {"a.csv", "path\n\"a", 2, "not closed"},
           {"a.jsonl", "{\"path\": \"a\"}\n{\"path\": \"b\"\n", 2, "not a JSON object"},
           {"a.jsonl", "\n\n[1]\n", 3, "not a JSON object"},
           {"a.jsonl", "{\"path\": \"\xff\"}\n", 1, "not a JSON object"},
           {"a.jsonl", "{\"label\": 1}\n", 1, "no path"},
           {"a.jsonl", "{\"path\": 1}\n", 1, "no path"},
           {"a.jsonl", "{\"path\": \"a\", \"label\": 1.5}\n", 1, "not an integer (got 1.5)"},
           {"a.jsonl", "{\"path\": \"a\", \"label\": \"1\"}\n", 1, "not an integer"},
           {"a.jsonl", "{\"path\": \"a\", \"label\": 18446744073709551615}\n", 1, "not an integer"},
           {"a.jsonl", "{\"path\": \"a\", \"x\": " + deep + "}\n", 1, "nests too deep"},
           {"a.jsonl", "\n{\"path\": \"" + std::string(1 << 20, 'a') + "\"}", 2, "over 1 MiB"},
       }) {
    const Error error = ErrorIn(c.uri, c.text);
    EXPECT_EQ(error.details().where, c.uri + ": line " + std::to_string(c.line))
        << c.text.substr(0, 100);
    EXPECT_THAT(error.what(), HasSubstr(c.what));
  }
  EXPECT_THAT(ErrorIn("a.csv", "path\na\n", {.label = "class"}).what(), HasSubstr("class"));
  EXPECT_THAT(ErrorIn("a.jsonl", "{\"path\": \"a\"}", {.label = "class"}).what(),
              HasSubstr("class"));
  EXPECT_EQ(ErrorIn("a.csv", "path,label\n").code(), ErrorCode::kEmpty);
  EXPECT_EQ(ErrorOf([&] { Read({"nowhere.csv"}); }).code(), ErrorCode::kNotFound);
}

TEST_F(ManifestTest, FieldsAreBoundedInNumber) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "{\"path\": \"a\", \"f" + std::to_string(i) + "\": 1}\n";
  }
  const Error error = ErrorIn("a.jsonl", text);
  EXPECT_EQ(error.code(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(error.details().where, "a.jsonl: line 257");
}

TEST_F(ManifestTest, AServersManifestNamesOnlyWhatLiesBelowIt) {
  const std::string uri = "http://host/data/a.csv";
  for (const char* path : {"/etc/passwd", "../x.jpg", "a/../../x.jpg", "http://other/x.jpg",
                           "HTTPS://host/x.jpg", "a//b", "file:///x"}) {
    EXPECT_THAT(ErrorIn(uri, std::string("path\n") + path + "\n").what(),
                AllOf(HasSubstr("line 2"), HasSubstr("below it")))
        << path;
  }
  storage_.Put(uri, "path\nc 1/x.jpg\n");
  EXPECT_THAT(Describe(Read({uri})), ElementsAre("c 1/x.jpg http://host/data/c 1/x.jpg"));
  storage_.Put("here/a.csv", "path\nhttp://host/x.jpg\n../y.jpg\n");
  EXPECT_THAT(Describe(Read({"here/a.csv"})),
              ElementsAre("http://host/x.jpg http://host/x.jpg", "../y.jpg here/../y.jpg"));
}

TEST_F(ManifestTest, AManifestThatShrinksWhileItIsReadIsTruncated) {
  storage_.Put("a.csv", "path\na.jpg\nb.jpg\n");
  storage_.ShrinkInReads("a.csv", 8);
  EXPECT_EQ(ErrorOf([&] { Read({"a.csv"}); }).code(), ErrorCode::kTruncated);
}

TEST(ManifestMutationTest, AnyBytesAreReadOrNamedByLine) {
  RandomStream random({.low = 2, .high = 9});
  FakeStorage storage;
  const std::string csv = "path,label,t\na.jpg,1,\"x\"\"y\"\nb.jpg,,z\n";
  const std::string json =
      "{\"path\": \"a\", \"label\": 1, \"t\": [{}, \"x\"]}\n{\"path\": \"b\"}\n";
  int bad = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string uri = round % 2 == 0 ? "a.csv" : "a.jsonl";
    std::string text = round % 2 == 0 ? csv : json;
    for (uint32_t changes = 1 + random.Below(3); changes > 0; --changes) {
      text[random.Below(static_cast<uint32_t>(text.size()))] = static_cast<char>(
          random.Below(4) == 0 ? random.Below(256) : "\"\n,{}:["[random.Below(7)]);
    }
    storage.Put(uri, text);
    try {
      Describe(ReadManifests({uri}, {}, storage));
    } catch (const Error& error) {
      ++bad;
      ASSERT_THAT(error.what(), HasSubstr(uri)) << text;
    }
  }
  EXPECT_GT(bad, 5'000);
}

}  // namespace
}  // namespace echopipe::internal
